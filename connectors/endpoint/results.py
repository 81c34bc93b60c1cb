"""What an outside client gets back: results of servers as they are, and failures as tool results.

Pure. A failure is a result that a model can read; `_meta` says the same to programs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import mcp_types as types
from mcp_types.methods import serialize_server_result
from pydantic import BaseModel, ValidationError

from connectors.protocol.identifiers import MODERN_REVISION
from connectors.resource_tools.text import ToolResult
from connectors.sessions import Fault, FaultKind

Json = dict[str, Any]

FAULT_KEY: Final = "ai.nimblebrain/fault"
"""In the `_meta` of a result that the host made because a server failed."""

_ENVELOPE: Final = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
"""What the 2026 era wants and older revisions drop. Nothing here is for a shared cache."""

_MODELS: Final[dict[str, type[BaseModel]]] = {
    "tools/list": types.ListToolsResult,
    "tools/call": types.CallToolResult,
    "resources/list": types.ListResourcesResult,
    "resources/templates/list": types.ListResourceTemplatesResult,
    "resources/read": types.ReadResourceResult,
}
_ENVELOPE_PREFIX: Final = "io.modelcontextprotocol/"
_WORDS: Final = {
    FaultKind.UNREACHABLE: "cannot be reached",
    FaultKind.TIMEOUT: "did not answer in time",
    FaultKind.UNAUTHORIZED: "refused the workspace's credential",
    FaultKind.FORBIDDEN: "does not allow this with the workspace's credential",
    FaultKind.RATE_LIMITED: "takes no more requests for now",
    FaultKind.SESSION_LOST: "lost the session; the call may have run",
    FaultKind.TOO_LARGE: "sent more than the host takes",
    FaultKind.PROTOCOL: "sent something that is not MCP",
    FaultKind.REMOTE: "answered with an error",
    FaultKind.REDIRECT: "sent the request elsewhere",
    FaultKind.BLOCKED: "is at an address that connectors may not reach",
    FaultKind.PROXY: "cannot be reached through the host's proxy",
    FaultKind.CLOSED: "dropped the connection; the call may have run",
}


def text_result(text: str, *, is_error: bool = False, meta: Json | None = None) -> Json:
    result: Json = {"content": [{"type": "text", "text": text}], "isError": is_error}
    return result | {"_meta": meta} if meta else result


def tool_result(result: ToolResult) -> Json:
    return text_result(result.output, is_error=result.is_error)


def problem_of(fault: Fault) -> str:
    """Say in our own words how a server failed: nothing that it sent (for traces)."""
    status = f" (HTTP {fault.http_status})" if fault.http_status else ""
    code = f" (code {fault.code})" if fault.code is not None else ""
    return f"The server {_WORDS.get(fault.kind, 'failed')}{status}{code}."


def fault_result(name: str, fault: Fault) -> Json:
    """Give the failure of a connector as a tool result, with its limit and when to try again."""
    again = fault.retry_after_seconds
    retry = f" Try again in {math.ceil(again)} seconds." if again is not None else ""
    details: Json = {"kind": fault.kind.value}
    if fault.code is not None:
        details["code"] = fault.code
    if fault.http_status is not None:
        details["httpStatus"] = fault.http_status
    if again is not None:
        details["retryAfterSeconds"] = again
    if fault.data is not None:
        details["data"] = fault.data
    verb = " answered with an error" if fault.kind is FaultKind.REMOTE else ""
    text = f"{name}{verb}: {fault.message}{retry}"
    return text_result(text, is_error=True, meta={FAULT_KEY: details})


def served(method: str, version: str, raw: Json) -> Json | None:
    """Give a server's result as this era's client takes it; None when it is no such result.

    What it says of itself or of caches in the envelope is between it and the host.
    """
    result = raw | _ENVELOPE
    if isinstance(meta := raw.get("_meta"), dict):
        result["_meta"] = {
            key: value for key, value in meta.items() if not key.startswith(_ENVELOPE_PREFIX)
        }
    try:
        # The 2026 surface takes anything for some result of these, so the model itself is asked.
        _MODELS[method].model_validate(result, by_name=False)
        is_settled = is_modern(version) and method in ("tools/call", "resources/read")
        return result if is_settled else serialize_server_result(method, version, result)
    except ValidationError:
        # Its text holds what the server sent.
        return None


def listing(method: str, version: str, key: str, entries: Sequence[Json]) -> Json:
    """Give a list result; an entry that this revision cannot carry is left out alone."""
    whole = served(method, version, {key: list(entries)})
    if whole is None:
        fit = [each for each in entries if served(method, version, {key: [each]}) is not None]
        whole = served(method, version, {key: fit}) or {key: []}
    return whole


def is_modern(version: str) -> bool:
    return version >= MODERN_REVISION


def not_found(uri: str, version: str, message: str) -> types.ErrorData:
    """Give the error for a URI that is not read. Source: SEP-2164; -32002 before it."""
    code = types.INVALID_PARAMS if is_modern(version) else -32002
    return types.ErrorData(code=code, message=message, data={"uri": uri})
