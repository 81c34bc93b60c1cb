"""How the two resource tools present themselves. Pure. Source: Resource tools."""

from __future__ import annotations

from typing import Any, Final

LIST_RESOURCES_TOOL: Final = "list_mcp_resources"
READ_FROM_TOOL: Final = "read_mcp_resource"

_READ_ONLY: Final = {"readOnlyHint": True, "destructiveHint": False}

LIST_RESOURCES: Final[dict[str, Any]] = {
    "name": LIST_RESOURCES_TOOL,
    "title": "List resources",
    "description": (
        "List the resources of the connected servers, one per line: "
        "<server> <uri> — <name> (<mimeType>): <description>."
    ),
    "inputSchema": {
        "type": "object",
        "properties": {
            "server": {"type": "string", "description": "Only the resources of this server."}
        },
    },
    "annotations": _READ_ONLY,
}

READ_FROM: Final[dict[str, Any]] = {
    "name": READ_FROM_TOOL,
    "title": "Read a resource of a server",
    "description": "Read the text of one resource of a connected server.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "server": {"type": "string", "description": "The server, as listed."},
            "uri": {"type": "string", "description": "The resource's URI, as listed."},
        },
        "required": ["server", "uri"],
    },
    "annotations": _READ_ONLY,
}
