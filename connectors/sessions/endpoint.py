"""One HTTP endpoint: its sockets, its headers, its redirects. What a response means is not here."""

from __future__ import annotations

import contextlib
import functools
import ssl
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpcore2
import httpx2

from connectors.sessions import http_rules
from connectors.sessions.body import read
from connectors.sessions.faults import WireFault, fault, of_transport
from connectors.sessions.guard import GuardedBackend, IsAllowed
from connectors.sessions.jsonrpc import encode
from connectors.sessions.values import FaultKind, Limits, Target

MAX_IGNORED_BYTES = 64 * 1024
"""What is read of a body that nobody needs, so that its socket can be used again."""

MAX_COOKIES = 20

_BELOW_HTTP = (
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.TimeoutException,
    httpcore2.UnsupportedProtocol,
)


@functools.lru_cache(maxsize=64)
def ssl_context_for(ca_bundle: str = "") -> ssl.SSLContext:
    """One for all who trust the same authorities: making one takes 20 to 70 ms.

    ca_bundle: PEM, of authorities besides the usual ones; `SSL_CERT_FILE` names other usual ones.
    Raises: ssl.SSLError for a bundle that holds no certificate.
    """
    context = httpx2.create_ssl_context()
    if ca_bundle:
        context.load_verify_locations(cadata=ca_bundle)
    return context


class Endpoint:
    """Sends requests to one address, over sockets that no other connection uses."""

    def __init__(self, target: Target, limits: Limits, is_allowed: IsAllowed) -> None:
        self._url = http_rules.endpoint_of(target.url)
        self.headers = http_rules.headers_of(target, self._url)
        """Sent with every request, below those of the request itself."""
        self._limits, self._is_allowed = limits, is_allowed
        is_https = self._url.scheme == "https"
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=ssl_context_for(target.ca_bundle) if is_https else None,
            max_connections=limits.max_concurrent,
            max_keepalive_connections=limits.max_concurrent,
            keepalive_expiry=limits.keepalive_seconds,
            network_backend=GuardedBackend(is_allowed),
        )
        self._cookies: dict[str, str] = {}
        self._is_closed = False

    @contextlib.asynccontextmanager
    async def send(
        self,
        verb: str,
        headers: Mapping[str, str],
        message: dict[str, Any] | None = None,
        *,
        is_endless: bool = False,
    ) -> AsyncIterator[httpcore2.Response]:
        """Send one HTTP request, and again to where the same origin redirects it (D12).

        is_endless: the answer is a subscription, of which only silence is bounded here.
        Raises: WireFault when nothing came back, or a redirect that is not followed.
        """
        if self._is_closed:
            raise fault(FaultKind.CLOSED, "The connection was closed.")
        url = self._url
        silence = self._limits.silence_seconds if is_endless else None
        timeout = {"connect": self._limits.connect_seconds, "read": silence}
        content = _encoded(message)
        try:
            for _ in range(self._limits.max_redirects + 1):
                async with self._pool.stream(
                    verb,
                    http_rules.core_url(url),
                    headers=http_rules.lines({**self.headers, **self._cookie(), **headers}),
                    content=content,
                    extensions={"timeout": timeout},
                ) as response:
                    self._keep_cookies(response)
                    location = http_rules.location_of(response)
                    if location is None:
                        yield response
                        return
                    url = http_rules.followed(response.status, url, location, self._is_allowed)
                    await read(response, MAX_IGNORED_BYTES)
        except _BELOW_HTTP as error:
            raise WireFault(of_transport(error)) from None
        raise fault(FaultKind.REDIRECT, "The server redirects in circles.")

    async def aclose(self) -> None:
        self._is_closed = True
        await self._pool.aclose()

    def _cookie(self) -> dict[str, str]:
        if not self._cookies:
            return {}
        return {"cookie": "; ".join(f"{name}={value}" for name, value in self._cookies.items())}

    def _keep_cookies(self, response: httpcore2.Response) -> None:
        """Keep what a sticky load balancer sets, for this endpoint and this connection only."""
        for key, line in response.headers:
            if key.lower() == b"set-cookie" and len(self._cookies) < MAX_COOKIES:
                name, _, value = line.decode("latin-1").partition(";")[0].partition("=")
                self._cookies[name.strip()] = value.strip()


def _encoded(message: dict[str, Any] | None) -> bytes:
    try:
        return b"" if message is None else encode(message)
    except ValueError:
        raise fault(FaultKind.PROTOCOL, "The request holds what JSON cannot carry.") from None
