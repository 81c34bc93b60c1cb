"""The calls that the host makes on an open connection. Each may raise MCPError or WireFault."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import find_invalid_x_mcp_header, x_mcp_header_map
from mcp_types import HEADER_MISMATCH, METHOD_NOT_FOUND

from connectors.sessions.connection import Opened
from connectors.sessions.faults import fault
from connectors.sessions.handshake import rediscover
from connectors.sessions.jsonrpc import Answer, is_clean
from connectors.sessions.values import MIB, Connected, FaultKind, Limits, Listed
from connectors.sessions.wire import LISTEN

_KEYS = {
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "tools/list": "tools",
}
LISTING_CHANGED = "notifications/resources/list_changed"
RESOURCE_UPDATED = "notifications/resources/updated"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


async def ping(opened: Opened) -> Connected:
    """A sign of life. `ping` left the protocol with the era of 2026."""
    if not opened.is_modern:
        try:
            await opened.ask("ping", {})
        except MCPError as error:
            if error.error.code != METHOD_NOT_FOUND:
                raise
        return opened.connected
    try:
        opened.connected = await rediscover(opened.session, opened.wire)
    except MCPError as error:
        if error.error.code != METHOD_NOT_FOUND:
            raise
        # An older server took the place of the one that was discovered.
        raise fault(FaultKind.SESSION_LOST, "The server no longer speaks 2026-07-28.") from None
    return opened.connected


def whole(answer: Answer) -> dict[str, Any]:
    """The result of a call, all of which can be stored and sent on.

    Raises: WireFault when it cannot.
    """
    if answer.is_suspect and not is_clean(answer.result):
        words = "The server's answer holds text that is not Unicode, or is nested too deep."
        raise fault(FaultKind.PROTOCOL, words)
    return answer.result


async def list_entries(opened: Opened, method: str, limits: Limits) -> Listed:
    """All pages, entry by entry: one that nobody can store costs itself alone (F-035, S16)."""
    entries: list[object] = []
    unreadable = pages = size_bytes = 0
    cursor: object = None
    seen: set[object] = set()
    while True:
        # An empty string is a cursor like any other (D4).
        answer = await opened.ask(method, {} if cursor is None else {"cursor": cursor})
        page = answer.result.get(_KEYS[method])
        if not isinstance(page, list):
            raise fault(FaultKind.PROTOCOL, "The server's listing holds no list.")
        kept = [entry for entry in page if _is_usable(entry, answer, method, opened)]
        unreadable += len(page) - len(kept)
        entries += kept
        pages += 1
        size_bytes += answer.size_bytes
        cursor = answer.result.get("nextCursor")
        cut_short = _cut_short(cursor, seen, pages, len(entries), size_bytes, limits)
        if cursor is None or cut_short is not None:
            return Listed(entries[: limits.max_entries], pages, cut_short, unreadable)
        seen.add(cursor)


def _cut_short(
    cursor: object,
    seen: set[object],
    pages: int,
    entries: int,
    size_bytes: int,
    limits: Limits,
) -> str | None:
    """Why a listing goes no further although the server says that there is more (F-037, D4)."""
    if entries > limits.max_entries:
        return f"it has more than {limits.max_entries} entries"
    if cursor is None:
        return None
    if not isinstance(cursor, str):
        return "the server's cursor is not text"
    if cursor in seen:
        return "the server repeats a page"
    if pages >= limits.max_pages:
        return f"it has more than {limits.max_pages} pages"
    if entries >= limits.max_entries:
        return f"it has more than {limits.max_entries} entries"
    if size_bytes >= limits.max_body_bytes:
        return f"it is larger than {limits.max_body_bytes // MIB} MiB"
    return None


def _is_usable(entry: object, answer: Answer, method: str, opened: Opened) -> bool:
    if answer.is_suspect and not is_clean(entry):
        return False
    if method != "tools/list" or not opened.is_modern or not isinstance(entry, dict):
        return True
    return _learn_headers(entry, opened)


def _learn_headers(tool: dict[str, Any], opened: Opened) -> bool:
    """Remember which arguments of a tool travel as headers too; False when it says so wrongly.

    Source: MCP 2026-07-28, "Tools", x-mcp-header: such a tool must be left out.
    """
    name, schema = tool.get("name"), tool.get("inputSchema")
    if not isinstance(name, str) or not isinstance(schema, dict):
        return True
    if find_invalid_x_mcp_header(schema) is not None:
        return False
    opened.session._x_mcp_header_maps[name] = x_mcp_header_map(schema)
    return True


async def call_tool(
    opened: Opened,
    name: str,
    arguments: Mapping[str, Any],
    *,
    meta: Mapping[str, Any],
    client_capabilities: dict[str, Any] | None,
    on_progress: ProgressFnT | None,
    limits: Limits,
) -> dict[str, Any]:
    async def call() -> Answer:
        params: dict[str, Any] = {"name": name, "arguments": dict(arguments)}
        if meta:
            params["_meta"] = dict(meta)
        return await opened.ask(
            "tools/call", params, client_capabilities=client_capabilities, on_progress=on_progress
        )

    try:
        return whole(await call())
    except MCPError as error:
        if error.error.code != HEADER_MISMATCH or name in opened.session._x_mcp_header_maps:
            raise
    # Refused unread, for want of headers that only the tool's listing tells.
    await list_entries(opened, "tools/list", limits)
    return whole(await call())


async def listen(
    opened: Opened,
    uris: Sequence[str],
    on_change: Callable[[str | None], None],
    on_open: Callable[[], None],
) -> None:
    """Hold a subscription until the server ends it."""
    if not opened.is_modern:
        raise fault(FaultKind.PROTOCOL, "The server is of an era without subscriptions.")

    def on_notification(method: str, params: Mapping[str, Any]) -> None:
        if method == LISTING_CHANGED:
            on_change(None)
        elif method == RESOURCE_UPDATED and isinstance(uri := params.get("uri"), str):
            on_change(uri)
        elif method == ACKNOWLEDGED:
            if not _honours_anything(params.get("notifications")):
                raise fault(FaultKind.PROTOCOL, "The server tells no changes.")
            on_open()

    wanted = {"resourcesListChanged": True, "resourceSubscriptions": list(uris)}
    await opened.ask(LISTEN, {"notifications": wanted}, on_notification=on_notification)


def _honours_anything(granted: object) -> bool:
    return isinstance(granted, dict) and bool(
        granted.get("resourcesListChanged") or granted.get("resourceSubscriptions")
    )
