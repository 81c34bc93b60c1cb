"""The workspace's MCP endpoint for outside clients."""

from __future__ import annotations

from connectors.endpoint.asgi import McpEndpoint

__all__ = ["McpEndpoint"]
