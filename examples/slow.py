"""A billing server that is slow and sometimes wrong on purpose, to see what a host makes of it.

- "Payments to reconcile" answers after --slow-seconds (7): longer than a host waits for a facet.
- "Invoices overdue" answers every third read with a count that is none.
- One entry is marked as a facet but has no title, so it is no facet.
- Every --fail-every (25th) request gets HTTP 503 (0: none does).
- "Refunds to approve" is always well, and must not suffer from the others.

    python -m examples.slow --port 8904
"""

from __future__ import annotations

import itertools

import anyio
from mcp.server.extension import Extension
from mcp.server.mcpserver import MCPServer
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from examples.serving import argument_parser, serve

FACETS = "ai.nimblebrain/facets"
JSON = "application/json"


class Facets(Extension):
    identifier = FACETS


def build_server(slow_seconds: float) -> MCPServer:
    server = MCPServer("example-billing", version="1.0.0", extensions=[Facets()], log_level="ERROR")
    reads_of_overdue = itertools.count(1)

    @server.resource(
        "billing://facets/payments-to-reconcile",
        name="payments-to-reconcile",
        title="Payments to reconcile",
        mime_type=JSON,
        meta={FACETS: {"level": "warning"}},
    )
    async def payments_to_reconcile() -> dict[str, int]:
        await anyio.sleep(slow_seconds)
        return {"count": 12}

    @server.resource(
        "billing://facets/invoices-overdue",
        name="invoices-overdue",
        title="Invoices overdue",
        mime_type=JSON,
        meta={FACETS: {"level": "critical"}},
    )
    async def invoices_overdue() -> dict[str, object]:
        return {"count": 4 if next(reads_of_overdue) % 3 else "four"}

    @server.resource(
        "billing://facets/refunds-to-approve",
        name="refunds-to-approve",
        title="Refunds to approve",
        mime_type=JSON,
        meta={FACETS: {"level": "warning"}},
    )
    async def refunds_to_approve() -> dict[str, int]:
        return {"count": 2}

    @server.resource(
        "billing://facets/nameless", name="nameless", mime_type=JSON, meta={FACETS: {}}
    )
    async def nameless() -> dict[str, int]:
        return {"count": 1}

    return server


class FailingNowAndThen:
    """Answer every n-th HTTP request with 503, instead of the app."""

    def __init__(self, app: ASGIApp, every: int) -> None:
        self.app = app
        self.every = every
        self.requests = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self.requests += 1
            if self.every > 0 and self.requests % self.every == 0:
                answer = PlainTextResponse("Out for lunch", status_code=503)
                return await answer(scope, receive, send)
        await self.app(scope, receive, send)


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--slow-seconds", type=float, default=7)
    parser.add_argument("--fail-every", type=int, default=25)
    options = parser.parse_args()
    app = build_server(options.slow_seconds).streamable_http_app()
    serve(FailingNowAndThen(app, options.fail_every), options)


if __name__ == "__main__":
    main()
