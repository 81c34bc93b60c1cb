"""A tool call and a resource read through the endpoint, beside what people would take instead.

    .venv/bin/python -m benchmarks.gateways

FastMCP's proxy, mcp-proxy and ContextForge come from the package registry into virtual environments
that go when this ends; one that does not install or start is left out, with the reason. All ways
lead to the same server and are asked by the same raw client, in the same run and in turns.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import httpx2

from benchmarks.contextforge import contextforge
from benchmarks.peers import REVISION
from benchmarks.tool_calls import RECORD, line_of, started
from benchmarks.venvs import LeftOut, free_port, installed, running

ROUNDS, CALLS, AT_ONCE = 4, 64, 8
CALL, READ = "tools/call", "resources/read"
OLDER = "2025-11-25"

FASTMCP = """import asyncio, sys
from fastmcp import Client
from fastmcp.server import create_proxy

async def main():
    async with Client(sys.argv[1]) as client:
        target = client if sys.argv[3] == "shared" else sys.argv[1]
        await create_proxy(target).run_async(
            transport="http", host="127.0.0.1", port=int(sys.argv[2]),
            stateless_http=True, json_response=True, show_banner=False, log_level="ERROR")

asyncio.run(main())"""


class Way:
    """One way to the server. revision: of the protocol, spoken to whoever is on the way."""

    def __init__(
        self, url: str, tool: str, revision: str = REVISION, token: str = "", can_read: bool = True
    ) -> None:
        self.url, self.revision, self.can_read = url, revision, can_read
        self._params = {CALL: {"name": tool, "arguments": {"a": 1}}, READ: {"uri": RECORD}}
        self._headers = {"accept": "application/json, text/event-stream"}
        if token:
            self._headers["authorization"] = f"Bearer {token}"

    async def open(self, http: httpx2.AsyncClient) -> None:
        """What a client of the older era says first: each caller has a session of its own."""
        self._callers = [dict(self._headers) for _ in range(AT_ONCE)]
        if self.revision == REVISION:
            return
        about = {"clientInfo": {"name": "bench", "version": "1"}, "capabilities": {}}
        params = {"protocolVersion": self.revision, **about}
        message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        then = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        for headers in self._callers:
            answer = await http.post(self.url, json=message, headers=headers)
            answer.raise_for_status()
            headers["mcp-protocol-version"] = self.revision
            if session := answer.headers.get("mcp-session-id"):
                headers["mcp-session-id"] = session
            await http.post(self.url, json=then, headers=headers)

    async def ask(self, http: httpx2.AsyncClient, method: str, caller: int) -> float:
        """The seconds that it took. Raises: AssertionError when it went wrong."""
        params, headers = dict(self._params[method]), dict(self._callers[caller])
        if self.revision == REVISION:
            params["_meta"] = {
                "io.modelcontextprotocol/protocolVersion": REVISION,
                "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            }
            name = params.get("name") or params["uri"]
            headers |= {"mcp-protocol-version": REVISION, "mcp-method": method, "mcp-name": name}
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        start = time.perf_counter()
        answer = await http.post(self.url, json=message, headers=headers)
        seconds = time.perf_counter() - start
        # One event, or plain JSON.
        body = answer.text.partition("data: ")[2] or answer.text
        result = json.loads(body).get("result", {})
        assert result.get("content") or result.get("contents"), answer.text
        return seconds

    async def round(self, http: httpx2.AsyncClient, method: str, at_once: int) -> float:
        """The median latency in ms."""
        taken: list[float] = []

        async def calls(caller: int) -> None:
            for _ in range(CALLS // at_once):
                taken.append(await self.ask(http, method, caller))

        await asyncio.gather(*map(calls, range(at_once)))
        return statistics.median(taken) * 1000


@contextlib.contextmanager
def fastmcp(folder: Path, url: str) -> Iterator[tuple[str, Way]]:
    with _fastmcp(folder, url, "fresh") as (version, way):
        yield f"FastMCP's proxy {version}, as documented: a new session for each request", way


@contextlib.contextmanager
def fastmcp_shared(folder: Path, url: str) -> Iterator[tuple[str, Way]]:
    with _fastmcp(folder, url, "shared") as (version, way):
        yield f"FastMCP's proxy {version}, all callers in one session", way


@contextlib.contextmanager
def _fastmcp(folder: Path, url: str, sessions: str) -> Iterator[tuple[str, Way]]:
    python, version = installed(folder, "fastmcp")
    port = free_port()
    with running([python, "-c", FASTMCP, url, str(port), sessions], folder, port):
        yield version, Way(f"http://127.0.0.1:{port}/mcp", "echo")


@contextlib.contextmanager
def mcp_proxy(folder: Path, url: str) -> Iterator[tuple[str, Way]]:
    """It leads from HTTP to stdio or from stdio to HTTP; from HTTP to HTTP it takes two of it."""
    python, version = installed(folder, "mcp-proxy")
    port = free_port()
    command = str(python.with_name("mcp-proxy"))
    words = [command, "--port", str(port), "--stateless", "--log-level", "ERROR", "--", command]
    with running([*words, "--transport", "streamablehttp", url], folder, port):
        way = Way(f"http://127.0.0.1:{port}/mcp", "echo", OLDER)
        yield f"mcp-proxy {version}, two in a row: HTTP to stdio to HTTP", way


@contextlib.contextmanager
def context_forge(folder: Path, url: str) -> Iterator[tuple[str, Way]]:
    with contextforge(folder, USE_STATEFUL_SESSIONS="true") as gateway:
        gateway.add("peer", url)
        can_read = bool(gateway.ask("/resources"))
        way = Way(f"{gateway.base}/mcp/", "peer-echo", OLDER, gateway.token, can_read)
        yield f"ContextForge {gateway.version}, one process on SQLite, with sessions", way


OTHERS: dict[str, Callable] = {
    "FastMCP's proxy": fastmcp,
    "FastMCP's proxy in one session": fastmcp_shared,
    "mcp-proxy": mcp_proxy,
    "ContextForge": context_forge,
}

ABOUT = """
The best of {rounds} rounds' medians; one process each, all on this machine. Direct and relay are
the floor: what the protocol costs alone.

As they were run here:

| | asks for a token | sessions upstream |
|---|---|---|
| the SDK's server | no | one |
| our endpoint, which also records each call in SQL | yes | one for each server |
| FastMCP's proxy | no | one per request, or one for all |
| mcp-proxy | no | one |
| ContextForge | yes | one per caller's session |

Protocol: ours, the SDK's and FastMCP's were asked in {new}; mcp-proxy and ContextForge speak {old}
at the most, after a handshake that was not timed.
"""


async def measure(ways: dict[str, Way]) -> dict[str, dict[tuple[str, int], float]]:
    """The best round's median in ms, by way, method and how many at once."""
    found: dict[str, dict[tuple[str, int], float]] = {name: {} for name in ways}
    async with httpx2.AsyncClient(timeout=30, trust_env=False) as http:
        for way in ways.values():
            await way.open(http)
        for method in (CALL, READ):
            asked = {name: way for name, way in ways.items() if method == CALL or way.can_read}
            for at_once in (1, AT_ONCE):
                for _ in range(ROUNDS):
                    for name, way in asked.items():
                        ms = await way.round(http, method, at_once)
                        best = found[name].get((method, at_once), ms)
                        found[name][method, at_once] = min(best, ms)
    return found


def table(found: dict[str, dict[tuple[str, int], float]], left_out: Sequence[str]) -> None:
    columns = [(method, at_once) for method in (CALL, READ) for at_once in (1, AT_ONCE)]
    print("| way | tool call | 8 at once | resource read | 8 at once |\n|---|---|---|---|---|")
    for name, times in found.items():
        cells = [f"{times[each]:.1f} ms" if each in times else "not offered" for each in columns]
        print(f"| {name} | {' | '.join(cells)} |")
    for words in left_out:
        print(f"\nLeft out: {words}")
    print(ABOUT.format(rounds=ROUNDS, new=REVISION, old=OLDER))


def main() -> None:
    with contextlib.ExitStack() as ends:
        folder = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="gateways-")))
        direct = f"http://127.0.0.1:{line_of(ends.enter_context(started('--peer')))}/mcp"
        relay = ends.enter_context(started("--relay", direct))
        host = ends.enter_context(started("--host", direct))
        token = line_of(host)
        address = f"http://127.0.0.1:{line_of(host)}/mcp/bench"
        ways = {
            "direct": Way(direct, "echo"),
            "the SDK's server over one client of the SDK": Way(
                f"http://127.0.0.1:{line_of(relay)}/mcp", "echo"
            ),
            "our endpoint": Way(address, "c3__echo", token=token),
        }
        left_out = []
        for name, begin in OTHERS.items():
            try:
                title, way = ends.enter_context(begin(folder, direct))
            except LeftOut as reason:
                left_out.append(f"{name}: {reason}")
            else:
                ways[title] = way
        table(asyncio.run(measure(ways)), left_out)


if __name__ == "__main__":
    main()
