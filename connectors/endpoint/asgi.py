"""`/mcp/<workspace>`: who may speak to the MCP server, decided for every request.

Async. Django's middleware does not run here, so what it would check is checked here: the host, the
origin, the credential, the size.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, TypeVar
from urllib.parse import urlsplit

from django.conf import settings
from django.db import close_old_connections, connection
from django.http.request import split_domain_port, validate_host
from django.utils import timezone
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from connectors.endpoint.catalogue import Catalogue
from connectors.endpoint.server import SCOPE_KEY, build_server
from connectors.endpoint.stored import Changed, admit, look_up
from connectors.traces import recorder

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
T = TypeVar("T")

_ENDPOINT = re.compile(r"/mcp/(?P<slug>[a-z0-9-]{1,64})/?")
_METADATA = re.compile(r"/\.well-known/oauth-protected-resource/mcp/(?P<slug>[a-z0-9-]{1,64})/?")


class McpEndpoint:
    """The ASGI application of the endpoint and of its metadata.

    It starts with the lifespan, or with the first request where a server has no lifespan.
    """

    def __init__(self) -> None:
        self._manager: StreamableHTTPSessionManager | None = None
        self._owner: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()
        self._doormen = ThreadPoolExecutor(_doormen(), "admit")
        self._clerks = ThreadPoolExecutor(4, "admit-anew")

    def serves(self, scope: Scope) -> bool:
        if scope["type"] != "http":
            return False
        path = scope["path"]
        return bool(_ENDPOINT.fullmatch(path) or _METADATA.fullmatch(path))

    async def start(self) -> None:
        """Bring the session manager up, in a task that owns it: its scopes may not change hands."""
        if self._owner is not None and not self._owner.done():
            return
        self._stopping = asyncio.Event()
        up: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._owner = asyncio.create_task(self._own(up), name="mcp-endpoint")
        await up

    async def _own(self, up: asyncio.Future[None]) -> None:
        manager = StreamableHTTPSessionManager(
            app=build_server(),
            # No sessions: any process may answer any request. Cancelling in the 2025 era is
            # therefore closing the connection; its notification finds nobody (S18).
            stateless=True,
            max_request_body_size=settings.ENDPOINT_MAX_BODY_BYTES,
        )
        try:
            async with manager.run():
                self._manager = manager
                up.set_result(None)
                await self._stopping.wait()
        finally:
            self._manager = None

    async def stop(self) -> None:
        """End what is under way, and write the traces that wait."""
        self._stopping.set()
        if self._owner is not None:
            await asyncio.gather(self._owner, return_exceptions=True)
        await asyncio.to_thread(recorder.flush)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope = {**scope, "headers": _trimmed(scope["headers"])}
        headers = _headers(scope)
        host = _host(headers)
        if host is None:
            return await _answer(send, 421, {"error": "invalid_host"})
        if not _is_own_origin(headers):
            return await _answer(send, 403, {"error": "invalid_origin"})
        base = f"{_scheme(scope, headers)}://{host}"
        if about := _METADATA.fullmatch(scope["path"]):
            return await _answer(send, 200, _metadata(base, about["slug"]))
        if scope["method"] != "POST":
            return await _answer(send, 405, {"error": "method_not_allowed"}, [(b"allow", b"POST")])
        found = _ENDPOINT.fullmatch(scope["path"])
        assert found is not None
        token = _bearer(headers)
        catalogue = await self._admitted(token, found["slug"]) if token else None
        if catalogue is None:
            challenge = _challenge(base, found["slug"], is_invalid=bool(token))
            return await _answer(
                send, 401, {"error": "invalid_token"}, [(b"www-authenticate", challenge)]
            )
        if self._manager is None:
            await self.start()
        assert self._manager is not None
        await self._manager.handle_request({**scope, SCOPE_KEY: catalogue}, receive, send)

    async def _admitted(self, token: str, slug: str) -> Catalogue | None:
        now = timezone.now()
        found = await _in_thread(self._doormen, look_up, token, slug, now)
        if not isinstance(found, Changed):
            return found
        # Listings may have to be read, which others need not wait for.
        return await _in_thread(self._clerks, admit, token, slug, now)


def _doormen() -> int:
    """How many threads let requests in.

    SQLite answers sooner than a thread gets the interpreter back that it lent out meanwhile: a
    second one would only compete for it. PostgreSQL is waited for.
    """
    return 1 if connection.vendor == "sqlite" else 4


async def _in_thread(threads: Executor, work: Callable[..., T], *given: object) -> T:
    """A plain hop, in the context of the request: what asgiref does besides costs as much as all
    that is asked there."""
    run = contextvars.copy_context().run
    return await asyncio.get_running_loop().run_in_executor(threads, run, _alone, work, *given)


def _alone(work: Callable[..., T], *given: object) -> T:
    # No request cycle of Django's gives the connection back here.
    close_old_connections()
    try:
        return work(*given)
    finally:
        close_old_connections()


def _trimmed(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Headers without white space around their values, some of which httptools leaves.

    Source: RFC 9110, section 5.5.
    """
    return [(name, value.strip(b" \t")) for name, value in headers]


def _headers(scope: Scope) -> dict[bytes, bytes]:
    """The headers by lower-case name; of one that came twice, the first."""
    headers: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        headers.setdefault(name, value)
    return headers


def _host(headers: Mapping[bytes, bytes]) -> str | None:
    """The host that the client asked for, if this site may be called so."""
    raw = headers.get(b"host", b"")
    if settings.TRUST_PROXY_HEADERS:
        raw = headers.get(b"x-forwarded-host", raw)
    host = raw.decode("latin-1")
    return host if _is_allowed(host) else None


def _is_allowed(host: str) -> bool:
    domain, _ = split_domain_port(host)
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)


def _is_own_origin(headers: Mapping[bytes, bytes]) -> bool:
    """A browser page of another site has no business here; other clients name no origin."""
    origin = headers.get(b"origin")
    if origin is None:
        return True
    try:
        return _is_allowed(urlsplit(origin.decode("latin-1")).netloc)
    except ValueError:
        return False


def _scheme(scope: Scope, headers: Mapping[bytes, bytes]) -> str:
    if settings.TRUST_PROXY_HEADERS and b"x-forwarded-proto" in headers:
        return "https" if headers[b"x-forwarded-proto"] == b"https" else "http"
    return str(scope.get("scheme", "http"))


def _bearer(headers: Mapping[bytes, bytes]) -> str:
    kind, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""


def _metadata(base: str, slug: str) -> dict[str, object]:
    """RFC 9728. The same for every name, so that it tells nothing about which workspaces exist."""
    return {"resource": f"{base}/mcp/{slug}", "bearer_methods_supported": ["header"]}


def _challenge(base: str, slug: str, *, is_invalid: bool) -> bytes:
    error = 'error="invalid_token", ' if is_invalid else ""
    address = f"{base}/.well-known/oauth-protected-resource/mcp/{slug}"
    return f'Bearer {error}resource_metadata="{address}"'.encode("latin-1", "replace")


async def _answer(
    send: Send,
    status: int,
    body: Mapping[str, object],
    headers: Sequence[tuple[bytes, bytes]] = (),
) -> None:
    content = json.dumps(body).encode()
    sent = [(b"content-type", b"application/json"), *headers]
    sent += [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]
    sent.append((b"content-length", str(len(content)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": sent})
    await send({"type": "http.response.body", "body": content})
