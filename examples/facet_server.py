"""A complete MCP server with one facet: `python facet_server.py`, then connect its address."""

import sys

from mcp.server.extension import Extension
from mcp.server.mcpserver import MCPServer

FACETS = "ai.nimblebrain/facets"


class Facets(Extension):
    identifier = FACETS  # Advertises the extension, with the empty settings that it has.


server = MCPServer("acme-outbound", version="1.0.0", extensions=[Facets()])


@server.resource(
    "acme://facets/drafts-awaiting-review",
    name="drafts-awaiting-review",
    title="Drafts awaiting review",  # The host shows: 3 Drafts awaiting review
    mime_type="application/json",
    meta={FACETS: {"level": "warning"}},  # or critical, or info
)
def drafts_awaiting_review() -> dict[str, int]:
    return {"count": 3}  # One aggregate query for the workspace that this connection serves.


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8900
    server.run("streamable-http", port=port)  # http://127.0.0.1:8900/mcp
