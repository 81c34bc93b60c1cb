"""list_mcp_resources and read_mcp_resource: for programs through `load_mcp`, and for endpoints.

No Django: `from connectors.resource_tools import load_mcp` works without the site.
Source: Resource tools.
"""

from __future__ import annotations

from connectors.resource_tools.source import Hints, Source, Tool, load_mcp
from connectors.resource_tools.text import ToolResult

__all__ = ["Hints", "Source", "Tool", "ToolResult", "load_mcp"]
