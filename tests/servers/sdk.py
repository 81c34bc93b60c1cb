"""A server built on the MCP SDK, served by uvicorn in a thread of its own."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import Any

import uvicorn
from mcp.server import Server

from workspaces.background import BackgroundLoop


@contextlib.contextmanager
def sdk_server(server: Server[Any], **options: Any) -> Iterator[str]:
    """Serve it on a free port; the address of its endpoint. options: of `streamable_http_app`."""
    listening = socket.create_server(("127.0.0.1", 0))
    app = server.streamable_http_app(**options)
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)
    running = uvicorn.Server(config)
    loop = BackgroundLoop("sdk-server")
    serving = loop.submit(running.serve([listening]))
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
    finally:
        running.should_exit = True
        serving.result(5)
        loop.close()
