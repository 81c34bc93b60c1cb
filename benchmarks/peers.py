"""Many small MCP servers of the 2026-07-28 era in one process of their own, with a latency.

    python -m benchmarks.peers --servers 40 --latency-ms 100

Prints its port. Server n is at /n/mcp. Raw on purpose: the peer's own cost should not be what is
measured.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator

FACETS = "ai.nimblebrain/facets"
REVISION = "2026-07-28"
PER_SERVER = 5


@contextlib.contextmanager
def peers(*, latency_ms: int) -> Iterator[str]:
    """Run the servers; their address up to the number."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.peers", "--latency-ms", str(latency_ms)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def answer(message: dict, path: str) -> dict:
    """The result of one request."""
    common = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    match message["method"]:
        case "server/discover":
            return common | {
                "supportedVersions": [REVISION],
                "capabilities": {"resources": {}, "extensions": {FACETS: {}}},
                "_meta": {"io.modelcontextprotocol/serverInfo": {"name": path, "version": "1"}},
            }
        case "resources/list":
            return common | {"resources": [entry(number) for number in range(PER_SERVER)]}
        case "resources/templates/list":
            return common | {"resourceTemplates": []}
        case "resources/read":
            uri = message["params"]["uri"]
            content = {"uri": uri, "mimeType": "application/json", "text": '{"count": 3}'}
            return common | {"contents": [content]}
        case method:
            raise ValueError(method)


def entry(number: int) -> dict:
    return {
        "uri": f"acme://facets/{number}",
        "name": f"facet-{number}",
        "title": f"Things of kind {number}",
        "mimeType": "application/json",
        "_meta": {FACETS: {"level": "warning"}},
    }


async def serve(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    delay: float,
    answer: Callable[[dict, str], dict] = answer,
) -> None:
    with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            path = head.split(" ", 2)[1]
            length = next(
                int(line.split(":")[1])
                for line in head.lower().splitlines()
                if line.startswith("content-length:")
            )
            message = json.loads(await reader.readexactly(length))
            await asyncio.sleep(delay)
            result = answer(message, path)
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
            writer.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
                + f"content-length: {len(body)}\r\n\r\n".encode()
                + body
            )
    writer.close()


async def main(delay: float) -> None:
    server = await asyncio.start_server(
        lambda reader, writer: serve(reader, writer, delay), "127.0.0.1", 0, backlog=1000
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--latency-ms", type=int, default=100)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main(parser.parse_args().latency_ms / 1000))
