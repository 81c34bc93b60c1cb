"""An outbound tool that speaks the 2025 revisions only, written without an SDK.

It shows what travels in that era: the extensions are advertised in the `initialize` result, and
records arrive in the `_meta` of a tools/call. `send_with_citations` never asks the CRM for a
record. It declares that `citations` holds `crm` URIs, and judges what the host handed over.

    python -m examples.outbound_2025 --port 8902
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from examples.serving import argument_parser, serve

FACETS = "ai.nimblebrain/facets"
RESOURCE_ARGUMENTS = "ai.nimblebrain/resource-arguments"
REVISIONS = ("2025-11-25", "2025-06-18", "2025-03-26")
METHOD_NOT_FOUND, INVALID_PARAMS = -32601, -32602
MAX_AGE_DAYS = 365

DRAFTS = ("Welcome back, Northwind", "Lisbon office: first steps", "Your trial ends on Friday")
FACET = {
    "uri": "outbound://facets/drafts-awaiting-review",
    "name": "drafts-awaiting-review",
    "title": "Drafts awaiting review",
    "mimeType": "application/json",
    "_meta": {FACETS: {"level": "warning"}},
}
TOOL = {
    "name": "send_with_citations",
    "description": "Send a message. Pass the source records as `citations`, by their URI.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "body": {"type": "string"},
            "citations": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["body"],
    },
    "_meta": {RESOURCE_ARGUMENTS: {"arguments": {"citations": {"schemes": ["crm"]}}}},
}

Json = dict[str, Any]


class RequestError(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def initialize(params: Json) -> Json:
    asked = params.get("protocolVersion")
    return {
        "protocolVersion": asked if asked in REVISIONS else REVISIONS[0],
        "capabilities": {"resources": {}, "tools": {}, "extensions": {FACETS: {}}},
        "serverInfo": {"name": "example-outbound", "version": "1.0.0"},
    }


def read_resource(params: Json) -> Json:
    if params.get("uri") != FACET["uri"]:
        raise RequestError(INVALID_PARAMS, "There is no such resource.")
    text = json.dumps({"count": len(DRAFTS)})
    return {"contents": [{"uri": FACET["uri"], "mimeType": "application/json", "text": text}]}


def call_tool(params: Json) -> Json:
    if params.get("name") != TOOL["name"]:
        raise RequestError(INVALID_PARAMS, "There is no such tool.")
    citations = params.get("arguments", {}).get("citations", [])
    handed_over = params.get("_meta", {}).get(RESOURCE_ARGUMENTS, {})
    today = datetime.now(UTC).date()
    refusals = [
        f"{uri}: {reason}"
        for uri in citations
        if (reason := refusal_of(handed_over.get(uri), today)) is not None
    ]
    if refusals:
        text = "Not sent. " + "; ".join(refusals)
    else:
        sources = ", ".join(f"{uri} ({quote_of(handed_over[uri])})" for uri in citations)
        text = f"Sent, citing {sources}." if citations else "Sent, without citations."
    return {"content": [{"type": "text", "text": text}], "isError": bool(refusals)}


def refusal_of(entry: Json | None, today: date) -> str | None:
    """Say why a citation may not be sent: unread, unusable or too old; None if it may."""
    if entry is None:
        return "the host handed over no record"
    if "error" in entry:
        return f"{entry['error']['code']}"
    try:
        record = json.loads(entry["contents"][0]["text"])
        age = today - date.fromisoformat(record["observedAt"])
    except (LookupError, TypeError, ValueError):
        return "the record has no date"
    return f"observed {age.days} days ago" if age.days > MAX_AGE_DAYS else None


def quote_of(entry: Json) -> str:
    record = json.loads(entry["contents"][0]["text"])
    return f"{record.get('text', record.get('kind'))}, {record['observedAt']}"


METHODS: dict[str, Callable[[Json], Json]] = {
    "initialize": initialize,
    "ping": lambda params: {},
    "resources/list": lambda params: {"resources": [FACET]},
    "resources/templates/list": lambda params: {"resourceTemplates": []},
    "resources/read": read_resource,
    "tools/list": lambda params: {"tools": [TOOL]},
    "tools/call": call_tool,
}


async def endpoint(request: Request) -> Response:
    message = await request.json()
    if "id" not in message:
        return Response(status_code=202)  # A notification: nothing to answer.
    answer: Json = {"jsonrpc": "2.0", "id": message["id"]}
    try:
        method = METHODS.get(message.get("method"))
        if method is None:
            # Also the answer to `server/discover`, by which a host learns that this server is old.
            raise RequestError(METHOD_NOT_FOUND, "Method not found")
        answer["result"] = method(message.get("params") or {})
    except RequestError as error:
        answer["error"] = {"code": error.code, "message": str(error)}
    return JSONResponse(answer)


app = Starlette(routes=[Route("/mcp", endpoint, methods=["POST"])])  # GET gets 405: no stream.

if __name__ == "__main__":
    serve(app, argument_parser(__doc__).parse_args())
