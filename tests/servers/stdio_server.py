"""A small MCP server on standard input and output, which misbehaves on request.

Run as a program: `python stdio_server.py [2025|2026]`. Reads of `env://` give its environment,
`die://` ends it, `hang://` is never answered, `flood://` gives a line without end.
"""

from __future__ import annotations

import json
import os
import sys

ERA = sys.argv[1] if len(sys.argv) > 1 else "2026"
CAPABILITIES = {"resources": {}, "extensions": {"ai.nimblebrain/facets": None}}


def result_of(method, params):
    if method == "server/discover" and ERA == "2026":
        return {"supportedVersions": ["2026-07-28"], "capabilities": CAPABILITIES}
    if method == "initialize" and ERA == "2025":
        info = {"name": "stdio", "version": "1"}
        revision = "2025-11-25"
        return {"protocolVersion": revision, "capabilities": CAPABILITIES, "serverInfo": info}
    if method == "resources/list":
        return {"resources": [{"uri": "a:", "title": "half \ud83d"}, {"uri": "b:"}]}
    if method == "resources/read":
        return read(params["uri"])
    return None


def read(uri):
    if uri == "die://":
        sys.exit(3)
    if uri == "flood://":
        while True:
            sys.stdout.write("x" * 65536)
    text = json.dumps(dict(os.environ)) if uri == "env://" else str(os.getpid())
    return {"contents": [{"uri": uri, "text": text}]}


def main():
    print("a greeting that is no JSON", flush=True)
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        if message.get("params", {}).get("uri") == "hang://":
            continue
        answer = {"jsonrpc": "2.0", "id": message["id"]}
        result = result_of(message["method"], message.get("params", {}))
        if result is None:
            answer["error"] = {"code": -32601, "message": "Method not found"}
        else:
            answer["result"] = result
        progress = {"jsonrpc": "2.0", "method": "notifications/message", "params": {}}
        print(json.dumps(progress), json.dumps(answer), sep="\n", flush=True)


if __name__ == "__main__":
    main()
