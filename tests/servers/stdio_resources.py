"""A dependency-free MCP server over stdio with one resource and one tool, as an SDK would find it.

python stdio_resources.py [--slow]      `--slow`: a read is never answered
"""

from __future__ import annotations

import json
import sys

TOOLS = [
    {
        "name": "slow",
        "description": "Say hello.",
        "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
        "annotations": {"readOnlyHint": True},
    }
]
RESOURCES = [
    {
        "uri": "fixture://hello",
        "name": "hello",
        "mimeType": "text/plain",
        "description": "A fixed text resource.",
    }
]


def result_of(method, params):
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}, "resources": {}},
            "serverInfo": {"name": "stdio-resources", "version": "1.0.0"},
        }
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "resources/list":
        return {"resources": RESOURCES}
    if method == "tools/call":
        words = f"hello {params.get('arguments', {}).get('name', 'world')}"
        return {"content": [{"type": "text", "text": words}], "isError": False}
    if method == "resources/read" and params.get("uri") == "fixture://hello":
        return {"contents": [{"uri": "fixture://hello", "text": "hello resource"}]}
    return {} if method == "ping" else None


def main():
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        if "--slow" in sys.argv and message["method"] == "resources/read":
            continue
        result = result_of(message["method"], message.get("params", {}))
        answer = {"jsonrpc": "2.0", "id": message["id"]}
        if result is None:
            is_read = message["method"] == "resources/read"
            words = "Resource not found" if is_read else "Method not found"
            answer["error"] = {"code": -32602 if is_read else -32601, "message": words}
        else:
            answer["result"] = result
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
