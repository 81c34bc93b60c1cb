"""What Python's garbage collector costs a process that reads from many servers.

.venv/bin/python -m benchmarks.collector
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from benchmarks.memory import loopback
from benchmarks.peers import PER_SERVER, peers
from benchmarks.report import head, note, row
from connectors.sessions import Connected, Limits, Sessions, Target
from overview.garbage import settle_collector

SERVERS, AT_ONCE, ROUNDS = 1000, 50, 3


@dataclass
class Collections:
    """Seconds of each, by generation."""

    seconds: list[list[float]] = field(default_factory=lambda: [[], [], []])
    _started: float = 0

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._started = time.thread_time()
        else:
            self.seconds[info["generation"]].append(time.thread_time() - self._started)

    @contextmanager
    def heard(self) -> Iterator[None]:
        gc.callbacks.append(self)
        try:
            yield
        finally:
            gc.callbacks.remove(self)


async def reads(base: str) -> tuple[float, Collections]:
    """Connect all servers and read all counts; CPU milliseconds of a read, and what was collected
    meanwhile."""
    sessions = Sessions(
        Limits(), claims=lambda target: {"ai.nimblebrain/facets": {}}, is_allowed=loopback
    )
    targets = [Target(number, 1, f"{base}/{number}/mcp") for number in range(SERVERS)]
    for target in targets:
        assert isinstance(await sessions.connect(target, 10), Connected)
    found, began = Collections(), time.process_time()
    with found.heard():
        for _ in range(ROUNDS):
            for first in range(0, SERVERS, AT_ONCE):
                results = await asyncio.gather(
                    *(
                        sessions.read_resource(target, f"acme://facets/{position}", 10)
                        for target in targets[first : first + AT_ONCE]
                        for position in range(PER_SERVER)
                    )
                )
                assert all(isinstance(each, dict) for each in results)
    used = time.process_time() - began
    await sessions.close()
    return used * 1000 / (SERVERS * PER_SERVER * ROUNDS), found


async def measure(base: str) -> None:
    before, usual = await reads(base)
    settle_collector()
    after, settled = await reads(base)
    head(f"{SERVERS} servers connected, {AT_ONCE * PER_SERVER} reads at a time")
    note("CPU of a read, by Python's own thresholds", described(before, usual))
    row(
        "as web processes and workers have it",
        f"{described(after, settled)}: {after / before:.2f} x",
        "0.8 x",
        is_met=after <= 0.8 * before,
    )


def described(milliseconds: float, found: Collections) -> str:
    """In words: the CPU of a read, and what of it and for how long the collector took."""
    every = [seconds for generation in found.seconds for seconds in generation]
    share = sum(every) * 1000 / (SERVERS * PER_SERVER * ROUNDS) / milliseconds
    longest = max(every, default=0) * 1000
    return f"{milliseconds:.2f} ms, {share:.0%} of it collecting, at most {longest:.0f} ms at once"


def main() -> None:
    with peers(latency_ms=0) as base:
        asyncio.run(measure(base))


if __name__ == "__main__":
    main()
