"""A tool call through the endpoint, beside a bare relay and a direct call to the server.

    .venv/bin/python -m benchmarks.tool_calls

The relay is the SDK's server over one pooled SDK client: no tokens, no ownership, no traces. All
three answer the same raw client, in the same run and in turns; server, relay and host are processes
of their own. Then 32 resource arguments, with an owner that takes 50 ms to answer each.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

import httpx2
import uvicorn

REVISION = "2026-07-28"
DECLARATION = "ai.nimblebrain/resource-arguments"
ROUNDS, CALLS = 7, 150
TOOL = {
    "name": "echo",
    "inputSchema": {"type": "object"},
    "_meta": {DECLARATION: {"arguments": {"to": {"schemes": ["crm"]}}}},
}


RECORD = "quick://record"
"""A resource that is there at once, unlike the records of the CRM."""


class Peer:
    """The server at the end: raw, so that its own cost is small. Counts what it is asked."""

    async def __call__(self, scope, receive, send) -> None:
        if scope["type"] != "http":
            return
        if scope["method"] != "POST":
            return await reply(send, 405, b"")
        body = b""
        while True:
            event = await receive()
            body += event.get("body", b"")
            if not event.get("more_body"):
                break
        message = json.loads(body)
        if "id" not in message:
            return await reply(send, 202, b"")
        if message["method"] == "resources/read" and message["params"]["uri"].startswith("crm:"):
            await asyncio.sleep(0.05)
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result_of(message)}
        await reply(send, 200, json.dumps(answer).encode())


async def reply(send, status: int, body: bytes) -> None:
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def result_of(message: dict) -> dict:
    common = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    match message["method"]:
        case "server/discover":
            capabilities = {"tools": {}, "resources": {}}
            info = {"io.modelcontextprotocol/serverInfo": {"name": "peer", "version": "1"}}
            versions = {"supportedVersions": [REVISION]}
            return common | versions | {"capabilities": capabilities, "_meta": info}
        case "initialize":
            # Of the era before, for gateways that speak no other.
            capabilities = {"tools": {"listChanged": False}, "resources": {"listChanged": False}}
            told = {"capabilities": capabilities, "serverInfo": {"name": "peer", "version": "1"}}
            return {"protocolVersion": message["params"]["protocolVersion"]} | told
        case "ping":
            return {}
        case "tools/list":
            return common | {"tools": [TOOL]}
        case "resources/list":
            return common | {"resources": [{"uri": RECORD, "name": "record"}]}
        case "resources/templates/list":
            return common | {"resourceTemplates": []}
        case "prompts/list":
            return common | {"prompts": []}
        case "tools/call":
            return common | {"content": [{"type": "text", "text": "hello"}]}
        case "resources/read":
            return common | {"contents": [{"uri": message["params"]["uri"], "text": "x" * 200}]}
        case method:
            raise ValueError(method)


def relay(url: str):
    """The SDK's server over one pooled SDK client."""
    from mcp.client import Client
    from mcp.server import Server

    clients: list[Client] = []

    async def call_tool(ctx, params):
        return await clients[0].call_tool(params.name, params.arguments)

    @contextlib.asynccontextmanager
    async def lifespan(server):
        async with Client(url, mode="auto", cache=None) as client:
            await client.list_tools()
            clients.append(client)
            yield {}

    async def read_resource(ctx, params):
        return await clients[0].read_resource(str(params.uri))

    server = Server(
        "relay",
        lifespan=lifespan,
        on_call_tool=call_tool,
        on_read_resource=read_resource,
        get_tool_input_schema=lambda name: None,
    )
    return server.streamable_http_app(stateless_http=True, streamable_http_path="/mcp")


def serve(app, port: int = 0) -> None:
    """Serve on this port, or a free one, and say which. On the loop that uvicorn itself takes."""
    config = uvicorn.Config(app, log_level="error", access_log=False, port=port)
    server = uvicorn.Server(config)

    async def run() -> None:
        serving = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        print(server.servers[0].sockets[0].getsockname()[1], flush=True)
        await serving

    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(run())


def host(url: str) -> None:
    """The product, with a workspace of ten connectors; prints the token, then the port."""
    from benchmarks.database import temporary_database

    with temporary_database():
        print(fill(url), flush=True)
        import overview.embedded.wake  # noqa: F401
        from overview.asgi import application

        serve(application)


def fill(url: str) -> str:
    from django.utils import timezone

    from connectors.actions import add_connector
    from connectors.models import Connector, Listing
    from workspaces.actions import create_token, create_workspace
    from workspaces.models import User

    person = User.objects.create_user("person@example.com")
    workspace = create_workspace("bench", "Bench", admin=person)
    now = timezone.now()
    for number in range(10):
        facts = {"asked_at": now, "connection": "ready", "first_ready_at": now}
        connector = Connector(
            workspace=workspace, slug=f"c{number}", name=f"C {number}", url=url, **facts
        )
        add_connector(connector, [], by=person)
        templates = [{"uriTemplate": f"crm://{number}/{{id}}", "name": "record"}]
        resources = [{"uri": RECORD, "name": "record"}] if number == 3 else []
        listed = [("tools", [TOOL]), ("templates", templates), ("resources", resources)]
        for kind, entries in listed:
            rows = Listing.objects.filter(connector=connector, kind=kind)
            rows.update(entries=entries, taken_at=now)
    return create_token(workspace, person, "bench")[1]


@contextlib.contextmanager
def started(*words: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "benchmarks.tool_calls", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(10)
        process.stdout.close()


def line_of(process: subprocess.Popen[str]) -> str:
    return process.stdout.readline().strip()


class Way:
    """One way to the tool."""

    def __init__(self, url: str, name: str, token: str = "") -> None:
        self.url, self.name = url, name
        self.headers = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": REVISION,
            "mcp-method": "tools/call",
            "mcp-name": name,
        }
        if token:
            self.headers["authorization"] = f"Bearer {token}"

    async def call(self, http: httpx2.AsyncClient, arguments: dict | None = None) -> float:
        meta = {
            "io.modelcontextprotocol/protocolVersion": REVISION,
            "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        params = {"name": self.name, "arguments": arguments or {"a": 1}, "_meta": meta}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        start = time.perf_counter()
        response = await http.post(self.url, json=message, headers=self.headers)
        seconds = time.perf_counter() - start
        assert response.json()["result"]["content"], response.text
        return seconds

    async def round(self, http: httpx2.AsyncClient, at_once: int) -> tuple[float, float]:
        """The median latency in ms, and calls a second."""
        taken: list[float] = []

        async def caller() -> None:
            for _ in range(CALLS // at_once):
                taken.append(await self.call(http))

        start = time.perf_counter()
        await asyncio.gather(*(caller() for _ in range(at_once)))
        return statistics.median(taken) * 1000, len(taken) / (time.perf_counter() - start)


async def measure(ways: dict[str, Way]) -> None:
    async with httpx2.AsyncClient(timeout=30, trust_env=False) as http:
        for at_once in (1, 8):
            found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
            for _ in range(ROUNDS):
                for name, way in ways.items():
                    found[name].append(await way.round(http, at_once))
            ms = {name: min(each[0] for each in rounds) for name, rounds in found.items()}
            rate = {name: max(each[1] for each in rounds) for name, rounds in found.items()}
            print(f"\n| {at_once} at once | latency | calls per second | added, of the relay |")
            print("|---|---|---|---|")
            added = {name: ms[name] - ms["direct"] for name in ways}
            for name in ways:
                share = f"{added[name] / added['relay']:.2f} x" if added[name] else ""
                print(f"| {name} | {ms[name]:.2f} ms | {rate[name]:.0f} | {share} |")
        uris = [f"crm://{number % 10}/{number}" for number in range(32)]
        plain = [await ways["host"].call(http) for _ in range(10)]
        citing = [await ways["host"].call(http, {"to": uris}) for _ in range(10)]
        added_ms = (statistics.median(citing) - statistics.median(plain)) * 1000
        print(f"\n32 resource arguments, whose owners take 50 ms each, add {added_ms:.0f} ms.")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("--port", type=int, default=0, help="of the peer")
    parser.add_argument("--relay", metavar="URL")
    parser.add_argument("--host", metavar="URL")
    options = parser.parse_args()
    if options.peer:
        return serve(Peer(), options.port)
    if options.relay:
        return serve(relay(options.relay))
    if options.host:
        return host(options.host)
    with started("--peer") as peer:
        direct = f"http://127.0.0.1:{line_of(peer)}/mcp"
        with started("--relay", direct) as between, started("--host", direct) as product:
            token = line_of(product)
            ways = {
                "direct": Way(direct, "echo"),
                "relay": Way(f"http://127.0.0.1:{line_of(between)}/mcp", "echo"),
                "host": Way(f"http://127.0.0.1:{line_of(product)}/mcp/bench", "c3__echo", token),
            }
            asyncio.run(measure(ways))


if __name__ == "__main__":
    main()
