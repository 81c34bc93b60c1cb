"""A bound on what a request may send to the site, before any of it is kept. ASGI.

Django writes the whole of a body to disk before it looks at who sends it; its own limits come
after that, and none is for files. The MCP endpoint has its own bound.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

MAX_BODY_BYTES: Final = 2 * 1024 * 1024
"""A form of DATA_UPLOAD_MAX_MEMORY_SIZE and a server.json of 256 KiB, with room."""


def bounded(application: Application, max_bytes: int = MAX_BODY_BYTES) -> Application:
    """The same application, which sees no body that is larger: 413 is answered for it."""

    async def within(scope: Scope, receive: Receive, send: Send) -> None:
        if _declared_bytes(scope) > max_bytes:
            return await _refuse(send)
        size, is_refused = 0, False

        async def receiving() -> Any:
            nonlocal size, is_refused
            message = await receive()
            size += len(message.get("body", b""))
            if size <= max_bytes:
                return message
            if not is_refused:
                is_refused = True
                await _refuse(send)
            # As if the client had gone: what was kept is let go.
            return {"type": "http.disconnect"}

        async def sending(message: Any) -> None:
            if not is_refused:
                await send(message)

        await application(scope, receiving, sending)

    return within


def _declared_bytes(scope: Scope) -> int:
    text = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
    # More digits than these the server itself refuses, or counts.
    return int(text) if text.isdigit() and len(text) < 20 else 0


async def _refuse(send: Send) -> None:
    body = b"This is more than the site takes.\n"
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"x-content-type-options", b"nosniff"),
        # The rest of the body is not waited for.
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": body})
