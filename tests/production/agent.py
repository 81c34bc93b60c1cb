"""An outside agent that calls tools with a token, at whichever address it is told."""

from __future__ import annotations

import json
import urllib.request
from typing import Any
from urllib.error import HTTPError

REVISION = "2026-07-28"
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": REVISION,
    "io.modelcontextprotocol/clientCapabilities": {},
}
CALL_SECONDS = 15


class Agent:
    """Alice's, in Acme."""

    def __init__(self, stack: Any) -> None:
        made = stack.manage("token", "create", "acme", "alice@example.com", "--json")
        self._token = json.loads(made)["token"]

    def call(self, url: str, tool: str, arguments: dict[str, object]) -> dict[str, Any]:
        """Call a tool once; the JSON-RPC answer. Raises: OSError, as urllib does, without one."""
        params = {"name": tool, "arguments": arguments, "_meta": ENVELOPE}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": REVISION,
            "Mcp-Method": "tools/call",
            "Mcp-Name": tool,
        }
        request = urllib.request.Request(f"{url}/mcp/acme", json.dumps(message).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=CALL_SECONDS) as answer:
                body = answer.read().decode()
        except HTTPError as error:
            if error.headers.get_content_type() != "application/json":
                raise
            body = error.read().decode()
        # One event, or plain JSON.
        _, is_stream, data = body.partition("data: ")
        said: dict[str, Any] = json.loads(data if is_stream else body)
        return said


def was_done(said: dict[str, Any]) -> bool:
    """Whether the tool's server did it and said so."""
    return "result" in said and not said["result"].get("isError")
