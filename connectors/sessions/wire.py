"""What both transports share: one request, its JSON-RPC messages, the handshake.

A `Wire` is a `Dispatcher` of the SDK: the SDK negotiates the era and stamps every request, the
wire carries them. The SDK's own transports end the whole client when one request fails below
HTTP, lose the HTTP status, buffer without bound and reject a page for one bad entry
(docs/decisions/own-wire.md), and put the current trace context into each request; a wire does not.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.abc
from mcp.shared.dispatcher import (
    CallOptions,
    Dispatcher,
    ProgressFnT,
    as_request_id,
    coerce_request_id,
)
from mcp.shared.exceptions import MCPError
from mcp.shared.transport_context import TransportContext
from mcp_types import INTERNAL_ERROR, METHOD_NOT_FOUND

from connectors.sessions.faults import Peer, fault
from connectors.sessions.jsonrpc import Answer, Body, decode
from connectors.sessions.values import MIB, FaultKind, Limits

DISCOVER = "server/discover"
INITIALIZE = "initialize"
LISTEN = "subscriptions/listen"
HANDSHAKE = frozenset({DISCOVER, INITIALIZE})

OnNotification = Callable[[str, Mapping[str, Any]], None]


@dataclass(slots=True)
class Exchange:
    """One request on its way."""

    id: int
    method: str
    max_bytes: int
    had_session: bool = False
    is_modern: bool = False
    on_progress: ProgressFnT | None = None
    on_notification: OnNotification | None = None


class Wire(Dispatcher[TransportContext]):
    """Carries requests to one server."""

    def __init__(self, limits: Limits, peer: Peer) -> None:
        self.limits = limits
        self.peer = peer
        self.handshake: dict[str, Any] = {}
        """The last answer to the probe or to `initialize`, as sent."""
        self._ids = itertools.count(1)

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        opts: CallOptions,
        on_notification: OnNotification | None = None,
    ) -> Answer:
        """Send a request and wait for its result. The deadline is the caller's.

        Raises: MCPError when the server answers with an error, WireFault for everything else.
        """
        raise NotImplementedError

    async def reply(self, message: dict[str, Any]) -> None:
        """Answer a request of the server's, or say nothing where that fails."""
        raise NotImplementedError

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """The SDK's way in, for the handshake."""
        answer = await self.request(method, params or {}, opts or {})
        self.handshake = answer.result
        return essentials(method, answer.result)

    async def run(
        self,
        on_request: object,
        on_notify: object,
        on_notify_intercept: object = None,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Nothing to drive: the host offers a server no method but `ping`, see `take`."""
        task_status.started()
        await anyio.sleep_forever()

    def exchange(
        self,
        method: str,
        params: Mapping[str, Any],
        opts: CallOptions,
        on_notification: OnNotification | None,
    ) -> tuple[Exchange, dict[str, Any]]:
        """A new exchange, and its message."""
        limit = self.limits.max_body_bytes
        exchange = Exchange(
            id=next(self._ids),
            method=method,
            # What a server says of itself is kept for as long as its connector.
            max_bytes=min(limit, MIB) if method in HANDSHAKE else limit,
            on_progress=opts.get("on_progress"),
            on_notification=on_notification,
        )
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": exchange.id, "method": method}
        if exchange.on_progress is not None:
            meta = {**params.get("_meta", {}), "progressToken": exchange.id}
            params = {**params, "_meta": meta}
        if params:
            message["params"] = params
        return exchange, message

    async def take(self, message: dict[str, Any], exchange: Exchange | None) -> None:
        """A message that is no answer: progress, a notification, a request of the server's."""
        method, params = message["method"], message.get("params")
        params = params if isinstance(params, dict) else {}
        if "id" in message:
            await self.reply(_reply_to(method, message["id"]))
        elif exchange is None:
            return
        elif method == "notifications/progress":
            await _report(params, exchange)
        elif exchange.on_notification is not None:
            exchange.on_notification(str(method), params)


def messages_of(raw: bytes) -> tuple[list[dict[str, Any]], Body]:
    """The messages of one body, one event or one line.

    Raises: WireFault when it holds anything else.
    """
    try:
        body = decode(raw)
    except ValueError:
        raise fault(FaultKind.PROTOCOL, "The server's answer is not JSON.") from None
    values = body.value if isinstance(body.value, list) else [body.value]
    messages = [value for value in values if isinstance(value, dict)]
    if len(messages) < len(values):
        raise fault(FaultKind.PROTOCOL, "The server's answer is no JSON-RPC message.")
    return messages, body


def id_of(value: object) -> object:
    """The id of an answer as the number it was sent with: servers may turn it into text."""
    request_id = as_request_id(value)
    return None if request_id is None else coerce_request_id(request_id)


def result_of(message: dict[str, Any]) -> dict[str, Any]:
    """The result in an answer.

    Raises: MCPError when it holds an error, WireFault when it holds neither.
    """
    error = message.get("error")
    if isinstance(error, dict):
        code, text = error.get("code"), error.get("message")
        raise MCPError(
            code if isinstance(code, int) else INTERNAL_ERROR,
            text if isinstance(text, str) else "",
            error.get("data"),
        )
    result = message.get("result")
    if not isinstance(result, dict):
        raise fault(FaultKind.PROTOCOL, "The server's answer holds no result.")
    return result


def essentials(method: str, result: dict[str, Any]) -> dict[str, Any]:
    """What the SDK needs of a handshake to settle the era.

    It rejects the whole answer for one odd capability (S15), and the era does not depend on them.
    """
    if method == DISCOVER and isinstance(versions := result.get("supportedVersions"), list):
        return {
            "supportedVersions": [version for version in versions if isinstance(version, str)],
            "capabilities": {},
            "resultType": "complete",
            "ttlMs": 0,
            "cacheScope": "private",
        }
    if method == INITIALIZE:
        return {
            "protocolVersion": result.get("protocolVersion"),
            "capabilities": {},
            "serverInfo": {"name": "", "version": ""},
        }
    return result


def _reply_to(method: object, request_id: object) -> dict[str, Any]:
    reply: dict[str, Any] = {"jsonrpc": "2.0", "id": request_id}
    if method == "ping":
        return reply | {"result": {}}
    return reply | {"error": {"code": METHOD_NOT_FOUND, "message": "Method not found"}}


async def _report(params: dict[str, Any], exchange: Exchange) -> None:
    progress, total, text = (params.get(name) for name in ("progress", "total", "message"))
    if exchange.on_progress is None or id_of(params.get("progressToken")) != exchange.id:
        return
    if isinstance(progress, int | float):
        await exchange.on_progress(
            progress,
            total if isinstance(total, int | float) else None,
            text if isinstance(text, str) else None,
        )
