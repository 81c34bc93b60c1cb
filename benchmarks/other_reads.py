"""Two more ways to read facets, for `benchmarks.facet_reads` to stand beside.

One connects for each read, over a shared TLS context; the other is the HTTP client alone, with the
request written by hand: what any client of the protocol costs comes on top of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable

import httpx2
import uvloop
from mcp.client import Client, advertise
from mcp.client.streamable_http import streamable_http_client

from benchmarks.peers import FACETS, REVISION

Read = Callable[[str, str], Awaitable[object]]
"""Reads the resource of a URI from the server at an address."""


def connect_per_read(reads: list[tuple[str, str]], rounds: int) -> tuple[list[float], list[float]]:
    """Seconds for all reads at once, and CPU seconds per read, of each round."""
    context = httpx2.create_ssl_context(trust_env=False)

    async def read(url: str, uri: str) -> None:
        async with httpx2.AsyncClient(verify=context, trust_env=False, timeout=30) as http:
            transport = streamable_http_client(url, http_client=http)
            async with Client(transport, extensions=[advertise(FACETS, {})], cache=None) as client:
                await client.read_resource(uri)

    async def run() -> tuple[list[float], list[float]]:
        return await _rounds(read, reads, rounds)

    return uvloop.run(run())


def raw(reads: list[tuple[str, str]], rounds: int) -> tuple[list[float], list[float]]:
    """The same of an HTTP client per server, as the others have one."""
    context = httpx2.create_ssl_context(trust_env=False)
    meta = {
        "io.modelcontextprotocol/protocolVersion": REVISION,
        "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }

    async def run() -> tuple[list[float], list[float]]:
        async with contextlib.AsyncExitStack() as ends:
            clients = {}
            for url in {url for url, _ in reads}:
                http = httpx2.AsyncClient(verify=context, trust_env=False, timeout=30)
                clients[url] = await ends.enter_async_context(http)

            async def read(url: str, uri: str) -> None:
                params = {"uri": uri, "_meta": meta}
                message = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": params}
                headers = {
                    "accept": "application/json, text/event-stream",
                    "mcp-protocol-version": REVISION,
                    "mcp-method": "resources/read",
                    "mcp-name": uri,
                }
                answer = await clients[url].post(url, json=message, headers=headers)
                assert answer.json()["result"]["contents"]

            await _rounds(read, reads, 1)  # Connections are open from here on, as everybody's.
            return await _rounds(read, reads, rounds)

    return uvloop.run(run())


async def _rounds(
    read: Read, reads: list[tuple[str, str]], rounds: int
) -> tuple[list[float], list[float]]:
    taken, cpu = [], []
    for _ in range(rounds):
        started, busy = time.perf_counter(), time.process_time()
        await asyncio.gather(*(read(url, uri) for url, uri in reads))
        taken.append(time.perf_counter() - started)
        cpu.append((time.process_time() - busy) / len(reads))
    return taken, cpu
