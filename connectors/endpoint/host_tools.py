"""The host's own tools: the agent's resource read, and the two opt-in resource tools.

Async. Nothing in here raises for what a model asks: a failure is a result.
Source: Resource Arguments, "What your tool can receive"; Resource tools.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from connectors.endpoint.calls import new_trace
from connectors.endpoint.catalogue import Catalogue, Entry, Offer
from connectors.endpoint.reads import Unread, read, read_from
from connectors.models import Outcome
from connectors.protocol.identifiers import READ_RESOURCE_TOOL
from connectors.protocol.resource_arguments import OutcomeCode
from connectors.resource_tools.text import Listing, ToolResult, cut, listed, read_text, refused
from connectors.resource_tools.tools import (
    LIST_RESOURCES,
    LIST_RESOURCES_TOOL,
    READ_FROM,
    READ_FROM_TOOL,
)
from connectors.runtime import resource_limits
from connectors.traces import RESOURCE_READ, Event, Trace, recorder

READ_RESOURCE: Final[Entry] = {
    "name": READ_RESOURCE_TOOL,
    "title": "Read a resource",
    "description": (
        "Read the text of a resource by its URI from the connector of this workspace that "
        "serves it. Long text is cut; content that is not text is left out."
    ),
    "inputSchema": {
        "type": "object",
        "properties": {"uri": {"type": "string", "description": "The resource's URI."}},
        "required": ["uri"],
    },
    "annotations": {"readOnlyHint": True, "destructiveHint": False},
}


def host_tools(catalogue: Catalogue) -> list[Entry]:
    """Give the host tools on offer, as far as the caller reaches."""
    tools = [READ_RESOURCE]
    if catalogue.caller.has_resource_tools:
        tools += [LIST_RESOURCES, READ_FROM]
    return [each for each in tools if catalogue.caller.may_call(each["name"])]


async def call_host_tool(
    catalogue: Catalogue, name: str, arguments: dict[str, Any], trace: Trace | None = None
) -> ToolResult | None:
    """Call a host tool and record it; None when this workspace has none of that name.

    trace: begun by a caller who wants to know its id.
    """
    tool = _TOOLS.get(name)
    is_optional = name != READ_RESOURCE_TOOL
    if tool is None or (is_optional and not catalogue.caller.has_resource_tools):
        return None
    trace = trace or new_trace(catalogue.caller, name)
    try:
        if not catalogue.caller.may_call(name):
            trace.end(Outcome.REFUSED, f"This token may not call {name}.")
            return refused(trace.problem)
        result = await tool(catalogue, arguments, trace)
        trace.end(Outcome.TOOL_ERROR if result.is_error else Outcome.OK)
        return result
    except BaseException:
        trace.end(Outcome.CANCELLED)
        raise
    finally:
        recorder.put(trace)


async def _read_resource(
    catalogue: Catalogue, arguments: dict[str, Any], trace: Trace
) -> ToolResult:
    uri = arguments.get("uri")
    if not isinstance(uri, str):
        return refused("`uri` has to be text.")
    result = _text_of(uri, await read(catalogue, uri), trace)
    return result if result.is_error else ToolResult(cut(result.output, _max_chars()))


async def _list_resources(
    catalogue: Catalogue, arguments: dict[str, Any], trace: Trace
) -> ToolResult:
    by_server = {offer.slug: _listing_of(offer) for offer in catalogue.ready}
    if arguments.get("server") is None:
        return listed(by_server)
    server = arguments["server"]
    if not isinstance(server, str) or server not in by_server:
        return refused(f"There is no connected server {server!r}.")
    return listed({server: by_server[server]})


def _listing_of(offer: Offer) -> Listing:
    return offer.resources_failure or list(offer.resources.values())


async def _read_from(catalogue: Catalogue, arguments: dict[str, Any], trace: Trace) -> ToolResult:
    server, uri = arguments.get("server"), arguments.get("uri")
    if not isinstance(server, str) or not isinstance(uri, str):
        return refused("`server` and `uri` have to be text.")
    offer = next((each for each in catalogue.ready if each.slug == server), None)
    if offer is None:
        return refused(f"There is no connected server {server!r}.")
    return _text_of(uri, await read_from(offer, uri), trace)


def _text_of(uri: str, outcome: tuple[Offer, dict[str, Any]] | Unread, trace: Trace) -> ToolResult:
    """Turn a read into text, with an event in the trace that says who was asked."""
    code, offer = OutcomeCode.OK, None
    if isinstance(outcome, Unread):
        code, offer, result = outcome.code, outcome.offer, refused(outcome.message)
    else:
        offer, raw = outcome
        result = read_text(raw)
        code = OutcomeCode.NOT_FOUND if result.is_error else OutcomeCode.OK
    if offer is not None:
        trace.connector_id, trace.connector_name = offer.connector_id, offer.name
    trace.events.append(
        Event(
            uri=uri,
            offset_ms=trace.offset_ms(time.monotonic()),
            code=code.value,
            size_bytes=0 if result.is_error else len(result.output.encode("utf-8", "replace")),
            server_id=offer.connector_id if offer else None,
            server_name=offer.name if offer else "",
            kind=RESOURCE_READ,
        )
    )
    return result


def _max_chars() -> int:
    return resource_limits().max_chars


_TOOLS: Final[dict[str, Callable[[Catalogue, dict[str, Any], Trace], Awaitable[ToolResult]]]] = {
    READ_RESOURCE_TOOL: _read_resource,
    LIST_RESOURCES_TOOL: _list_resources,
    READ_FROM_TOOL: _read_from,
}
