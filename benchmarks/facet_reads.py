"""Reading 200 facets on 40 connectors, cold and warm, beside a plain gather over the SDK's clients.

    .venv/bin/python -m benchmarks.facet_reads

Cold connects, lists and reads; warm reads. Ours is the worker's whole path: claims, sessions,
parsing, storing, pushing. The CPU is this process's, per read, with a peer that answers at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import time

from benchmarks.database import temporary_database
from benchmarks.other_reads import connect_per_read, raw
from benchmarks.peers import PER_SERVER, peers
from benchmarks.report import head, row

SERVERS = 40
LATENCY_MS = 100
ROUNDS = 7
URIS = [f"acme://facets/{number}" for number in range(PER_SERVER)]


class Clients:
    """The baseline: one pooled SDK client per server, everything in one gather."""

    def __init__(self, base: str) -> None:
        self._base = base

    async def __aenter__(self) -> Clients:
        self._stack = contextlib.AsyncExitStack()
        self._stop = asyncio.Event()
        self._owners: list[asyncio.Task[None]] = []
        self.clients: list = []
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stop.set()
        await asyncio.gather(*self._owners)

    async def connect(self) -> None:
        ready = [asyncio.get_running_loop().create_future() for _ in range(SERVERS)]
        self._owners = [asyncio.create_task(self._own(n, each)) for n, each in enumerate(ready)]
        self.clients = await asyncio.gather(*ready)

    async def _own(self, number: int, ready: asyncio.Future) -> None:
        from mcp.client import Client, advertise
        from mcp.client.streamable_http import streamable_http_client

        async with http_client() as http:
            transport = streamable_http_client(f"{self._base}/{number}/mcp", http_client=http)
            extensions = [advertise("ai.nimblebrain/facets", {})]
            async with Client(transport, extensions=extensions, cache=None) as client:
                ready.set_result(client)
                await self._stop.wait()

    async def cold(self) -> None:
        await self.connect()
        await asyncio.gather(*(client.list_resources() for client in self.clients))
        await self.warm()

    async def warm(self) -> None:
        reads = [client.read_resource(uri) for client in self.clients for uri in URIS]
        await asyncio.gather(*reads)


def http_client():
    """As pooled as ours, so that no TLS context is built for each."""
    import httpx2

    global _context
    with contextlib.suppress(NameError):
        return httpx2.AsyncClient(verify=_context, trust_env=False, timeout=30)
    _context = httpx2.create_ssl_context(trust_env=False)
    return httpx2.AsyncClient(verify=_context, trust_env=False, timeout=30)


def sdk(base: str, rounds: int) -> tuple[list[float], list[float], list[float]]:
    """Seconds cold, seconds warm, CPU seconds per warm read."""

    async def run() -> tuple[list[float], list[float], list[float]]:
        cold, warm, cpu = [], [], []
        for _ in range(rounds):
            async with Clients(base) as clients:
                started = time.perf_counter()
                await clients.cold()
                cold.append(time.perf_counter() - started)
                started, busy = time.perf_counter(), time.process_time()
                await clients.warm()
                warm.append(time.perf_counter() - started)
                cpu.append((time.process_time() - busy) / (SERVERS * PER_SERVER))
        return cold, warm, cpu

    import uvloop

    return uvloop.run(run())


def ours(base: str, rounds: int) -> tuple[list[float], list[float], list[float]]:
    """The same of the worker's path."""
    from connectors.models import Connector, Listing
    from connectors.runtime import close_runtime
    from overview.models import StoredFacet
    from overview.refresh import refresh

    for connector in Connector.objects.all():
        number = connector.slug.removeprefix("server-")
        Connector.objects.filter(pk=connector.pk).update(url=f"{base}/{number}/mcp")
    ids = list(Connector.objects.values_list("pk", flat=True))
    cold, warm, cpu = [], [], []
    for _ in range(rounds):
        close_runtime()
        StoredFacet.objects.all().delete()
        Listing.objects.update(taken_at=None, lease_until=None)
        started = time.perf_counter()
        refresh(ids)
        cold.append(time.perf_counter() - started)
        assert StoredFacet.objects.filter(count="3").count() == SERVERS * PER_SERVER
        StoredFacet.objects.update(read_at=None)
        started, busy = time.perf_counter(), time.process_time()
        refresh(ids)
        warm.append(time.perf_counter() - started)
        cpu.append((time.process_time() - busy) / (SERVERS * PER_SERVER))
        assert StoredFacet.objects.filter(read_at=None).count() == 0
    close_runtime()
    return cold, warm, cpu


def main() -> None:
    with temporary_database():
        from benchmarks.filling import fill

        fill("reads", connectors=SERVERS, facets=0, above_zero=0)
        with peers(latency_ms=LATENCY_MS) as base:
            sdk(base, 1), ours(base, 1)  # Imports and caches, once for both.
            sdk_cold, sdk_warm, _ = sdk(base, ROUNDS)
            our_cold, our_warm, _ = ours(base, ROUNDS)
            warm = [(name, way(of(base), 3)[0]) for name, way in OTHERS.items()]
        with peers(latency_ms=0) as base:
            *_, sdk_cpu = sdk(base, ROUNDS)
            *_, our_cpu = ours(base, ROUNDS)
            cpu = [(name, way(of(base), 3)[1]) for name, way in OTHERS.items()]
    head(
        f"200 facets on 40 connectors at {LATENCY_MS} ms, beside one gather over the SDK's clients"
    )
    compare("cold (ideal: 3 round trips, 300 ms)", our_cold, sdk_cold, 1.2)
    compare("warm (ideal: 1 round trip, 100 ms)", our_warm, sdk_warm, 1.2)
    compare("CPU per read", our_cpu, sdk_cpu, 1.5)
    print("\n| the same reads, warm | all 200 | CPU per read | of ours |\n|---|---|---|---|")
    line("ours: claims, sessions, parsing, storing, pushing", our_warm, our_cpu, our_cpu)
    line("the SDK's clients, kept open", sdk_warm, sdk_cpu, our_cpu)
    for (name, seconds), (_, busy) in zip(warm, cpu, strict=True):
        line(name, seconds, busy, our_cpu)


OTHERS = {
    "an SDK client connected for each read": connect_per_read,
    "an HTTP client alone, requests written by hand": raw,
}


def of(base: str) -> list[tuple[str, str]]:
    """Every read, as address and URI."""
    return [(f"{base}/{number}/mcp", uri) for number in range(SERVERS) for uri in URIS]


def compare(name: str, mine: list[float], theirs: list[float], at_most: float) -> None:
    a, b = statistics.median(mine) * 1000, statistics.median(theirs) * 1000
    words = f"{a:.2f} ms, theirs {b:.2f} ms: {a / b:.2f} x"
    row(name, words, f"{at_most} x", is_met=a / b <= at_most)


def line(name: str, seconds: list[float], cpu: list[float], ours_cpu: list[float]) -> None:
    all_ms, each_ms = statistics.median(seconds) * 1000, statistics.median(cpu) * 1000
    share = each_ms / statistics.median(ours_cpu) / 1000
    print(f"| {name} | {all_ms:.0f} ms | {each_ms:.2f} ms | {share:.2f} x |")


if __name__ == "__main__":
    main()
