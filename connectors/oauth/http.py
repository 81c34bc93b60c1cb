"""Single requests to addresses that strangers named: checked, short, and never redirected."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import httpcore2

from connectors.oauth.metadata import IsAllowed
from connectors.sessions import Fault, FaultKind
from connectors.sessions.body import read
from connectors.sessions.endpoint import ssl_context_for
from connectors.sessions.faults import WireFault, of_transport, retry_after_seconds
from connectors.sessions.guard import GuardedBackend
from connectors.sessions.http_rules import core_url, endpoint_of, header_of

REQUEST_SECONDS = 8
MAX_BYTES = 256 * 1024
"""Of one answer, decoded. Metadata and tokens are a few KiB."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. Its body may hold tokens."""

    status: int
    body: bytes = field(repr=False)
    challenge: str | None = None
    retry_after_seconds: float | None = None
    location: str | None = None

    @property
    def value(self) -> object:
        """The body as JSON; None for anything else."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None


async def send(
    verb: str,
    url: str,
    *,
    is_allowed: IsAllowed,
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
    ca_bundle: str = "",
) -> Answer | Fault:
    """Send one request. A redirect is an answer like any other: nothing follows it."""
    try:
        parsed = endpoint_of(url)
        sent = {
            "host": parsed.netloc.decode("ascii"),
            "accept": "application/json",
            "accept-encoding": "gzip",
            "user-agent": "workspace-overview",
            **(headers or {}),
        }
        if body:
            sent["content-length"] = str(len(body))
        async with (
            asyncio.timeout(REQUEST_SECONDS),
            httpcore2.AsyncConnectionPool(
                ssl_context=ssl_context_for(ca_bundle) if parsed.scheme == "https" else None,
                network_backend=GuardedBackend(is_allowed),
            ) as pool,
            pool.stream(
                verb,
                core_url(parsed),
                headers=[(name.encode(), value.encode()) for name, value in sent.items()],
                content=body,
                extensions={"timeout": {"connect": REQUEST_SECONDS}},
            ) as response,
        ):
            return Answer(
                status=response.status,
                body=await read(response, MAX_BYTES),
                challenge=header_of(response, b"www-authenticate"),
                retry_after_seconds=retry_after_seconds(header_of(response, b"retry-after")),
                location=header_of(response, b"location"),
            )
    except WireFault as error:
        return error.fault
    except TimeoutError:
        return Fault(FaultKind.TIMEOUT, f"No answer came within {REQUEST_SECONDS} s.")
    except (
        httpcore2.NetworkError,
        httpcore2.ProtocolError,
        httpcore2.TimeoutException,
        httpcore2.UnsupportedProtocol,
    ) as error:
        return of_transport(error)
