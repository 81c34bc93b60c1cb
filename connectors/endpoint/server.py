"""The MCP server that outside clients talk to: one for all workspaces, in both eras.

Async. Which workspace a request is for, and how far it reaches, comes with the request itself
(`catalogue_of`), so that nothing is kept between requests and any process can answer any of them.
The capabilities that a server sees are the host's own, whatever the outside client claims (D-R21).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import mcp_types as types
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel

from connectors.endpoint.calls import Call, call_connector, new_trace, refuse, why_refused
from connectors.endpoint.catalogue import Catalogue
from connectors.endpoint.host_tools import call_host_tool, host_tools
from connectors.endpoint.reads import Unread, read
from connectors.endpoint.results import (
    Json,
    fault_result,
    listing,
    not_found,
    served,
    text_result,
    tool_result,
)
from connectors.sessions import Fault
from workspaces import spans

logger = logging.getLogger(__name__)

SCOPE_KEY = "connectors.catalogue"
NAME = "workspace-overview"
VERSION = "0.1.0"

Context = ServerRequestContext[Any, Any]
Params = TypeVar("Params", bound=BaseModel)
Handler = Callable[[Context, Params], Awaitable[Json]]


def catalogue_of(ctx: Context) -> Catalogue:
    """Give what this very request reaches: it was put into its scope when it was let in."""
    assert ctx.request is not None
    catalogue: Catalogue = ctx.request.scope[SCOPE_KEY]
    return catalogue


def build_server() -> Server[Any]:
    """Make the server. Its instructions are empty: nothing of a facet reaches a model (F-108)."""
    # A schema look-up that knows nothing spares each call a listing: schemas are offered without
    # the keyword that it is for.
    server: Server[Any] = Server(NAME, version=VERSION, get_tool_input_schema=lambda name: None)
    # The SDK's own spans take a stranger's trace context for the parent of ours, and repeat names
    # and messages of errors: docs/decisions/tracing.md.
    server.middleware.clear()
    paged = types.PaginatedRequestParams
    server.add_request_handler("tools/list", paged, _guarded(_list_tools))
    server.add_request_handler("tools/call", types.CallToolRequestParams, _guarded(_call_tool))
    server.add_request_handler("resources/list", paged, _guarded(_list_resources))
    server.add_request_handler("resources/templates/list", paged, _guarded(_list_templates))
    server.add_request_handler(
        "resources/read", types.ReadResourceRequestParams, _guarded(_read_resource)
    )
    return server


def _guarded(handler: Handler[Params]) -> Handler[Params]:
    """In the 2025 era the SDK sends a client whatever an exception says: ours say nothing."""

    async def guarded(ctx: Context, params: Params) -> Json:
        # One of those that have a handler, so no text of the client's.
        spans.current().set_attribute("mcp.method.name", ctx.method)
        try:
            return await handler(ctx, params)
        except MCPError:
            raise
        except Exception:
            logger.exception("A request of an outside client failed", extra={"method": ctx.method})
            raise MCPError(types.INTERNAL_ERROR, "The host could not answer.") from None

    return guarded


async def _list_tools(ctx: Context, params: types.PaginatedRequestParams) -> Json:
    catalogue = catalogue_of(ctx)
    return _whole(ctx, params, "tools", [*host_tools(catalogue), *catalogue.tools()])


async def _list_resources(ctx: Context, params: types.PaginatedRequestParams) -> Json:
    return _whole(ctx, params, "resources", catalogue_of(ctx).resources())


async def _list_templates(ctx: Context, params: types.PaginatedRequestParams) -> Json:
    return _whole(ctx, params, "resourceTemplates", catalogue_of(ctx).templates())


def _whole(
    ctx: Context, params: types.PaginatedRequestParams, key: str, entries: list[Json]
) -> Json:
    if params.cursor is not None:
        raise MCPError(types.INVALID_PARAMS, "This list has one page: there is no such cursor.")
    return listing(ctx.method, ctx.protocol_version, key, entries)


async def _call_tool(ctx: Context, params: types.CallToolRequestParams) -> Json:
    catalogue = catalogue_of(ctx)
    arguments = dict(params.arguments or {})
    answered = await call_host_tool(catalogue, params.name, arguments)
    if answered is not None:
        return _served(ctx, tool_result(answered))
    found = catalogue.tool(params.name)
    if found is None:
        raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
    offer, tool = found
    trace = new_trace(catalogue.caller, params.name)
    if reason := why_refused(catalogue, offer, tool):
        return _served(ctx, refuse(trace, reason, offer))
    meta = dict((ctx.params or {}).get("_meta") or {})
    # Whoever asks for progress gives a token for it; servers get one of the host's own.
    on_progress = ctx.session.report_progress if "progressToken" in meta else None
    call = Call(arguments, meta, on_progress)
    outcome = await call_connector(catalogue, offer, tool, call, trace)
    if isinstance(outcome, Fault):
        return _served(ctx, fault_result(offer.name, outcome))
    return _served(ctx, outcome) if _is_complete(outcome) else _served(ctx, _asks(offer.name))


def _is_complete(result: Json) -> bool:
    return bool(result.get("resultType", "complete") == "complete")


def _asks(name: str) -> Json:
    return text_result(
        f"{name} wants to ask something before it goes on, which does not work through the host.",
        is_error=True,
    )


def _served(ctx: Context, result: Json) -> Json:
    fit = served(ctx.method, ctx.protocol_version, result)
    if fit is None:
        garbage = text_result("The server answered with no tool result.", is_error=True)
        fit = served(ctx.method, ctx.protocol_version, garbage)
    assert fit is not None
    return fit


async def _read_resource(ctx: Context, params: types.ReadResourceRequestParams) -> Json:
    uri, version = str(params.uri), ctx.protocol_version
    outcome = await read(catalogue_of(ctx), uri)
    if isinstance(outcome, Unread):
        raise MCPError.from_error_data(not_found(uri, version, outcome.message))
    offer, raw = outcome
    result = served(ctx.method, version, raw) if _is_complete(raw) else None
    if result is None:
        message = f"{offer.name} answered with something that is no resource."
        raise MCPError(types.INTERNAL_ERROR, message)
    return result
