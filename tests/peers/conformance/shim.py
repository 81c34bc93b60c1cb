"""What stands between the suite and the endpoint: the suite has no credential to give, and knows
the tools of its fixture by their own names only.

    suite -> shim: + Authorization, test_simple_text -> everything__test_simple_text -> endpoint

Everything else passes as it is: methods, headers, statuses, bodies, streams.
"""

from __future__ import annotations

import json
from typing import Any

HOST_TOOLS = "nb__"


class Shim:
    """An ASGI application around the site's. prefix: of the fixture's tools at the endpoint."""

    def __init__(self, app: Any, token: str, prefix: str) -> None:
        self._app, self._token, self._prefix = app, token, prefix

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        asked = await _body(receive)
        message = _message(asked)
        headers = dict(scope["headers"])
        headers[b"authorization"] = f"Bearer {self._token}".encode()
        if message.get("method") == "tools/call":
            asked = self._prefixed(message, headers)
            headers[b"content-length"] = str(len(asked)).encode()
        if message.get("method") == "tools/list":
            send = self._unprefixing(send)
        await self._app({**scope, "headers": list(headers.items())}, _giving(asked, receive), send)

    def _prefixed(self, message: dict[str, Any], headers: dict[bytes, bytes]) -> bytes:
        params = message.get("params")
        name = params.get("name") if isinstance(params, dict) else None
        if isinstance(name, str) and not name.startswith(HOST_TOOLS):
            message["params"]["name"] = self._prefix + name
            # A header that names another tool is the suite's test of the endpoint.
            if headers.get(b"mcp-name", b"").strip() == name.encode():
                padded = headers[b"mcp-name"]
                headers[b"mcp-name"] = padded.replace(
                    name.encode(), self._prefix.encode() + name.encode()
                )
        return json.dumps(message).encode()

    def _unprefixing(self, send: Any) -> Any:
        held: list[dict[str, Any]] = []

        async def held_back(event: dict[str, Any]) -> None:
            held.append(event)
            if event["type"] == "http.response.start" or event.get("more_body"):
                return
            start, *parts = held
            body = b"".join(part.get("body", b"") for part in parts)
            body = body.replace(self._prefix.encode(), b"")
            length = [(b"content-length", str(len(body)).encode())]
            kept = [each for each in start["headers"] if each[0].lower() != b"content-length"]
            await send({**start, "headers": kept + length})
            await send({"type": "http.response.body", "body": body})

        return held_back


async def _body(receive: Any) -> bytes:
    body, is_whole = b"", False
    while not is_whole:
        event = await receive()
        body += event.get("body", b"")
        is_whole = not event.get("more_body", False)
    return body


def _message(body: bytes) -> dict[str, Any]:
    try:
        message = json.loads(body)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


def _giving(body: bytes, receive: Any) -> Any:
    """Give the body once, then whatever the connection says, e.g. that it is closed."""
    given = False

    async def give() -> dict[str, Any]:
        nonlocal given
        if given:
            event: dict[str, Any] = await receive()
            return event
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return give
