"""What 300 open connections cost in memory.

.venv/bin/python -m benchmarks.memory
"""

from __future__ import annotations

import asyncio
import gc
import ipaddress
from pathlib import Path

from benchmarks.peers import peers
from benchmarks.report import head, row
from connectors.sessions import Connected, Limits, Sessions, Target

CONNECTIONS = 300


def resident_mib() -> float:
    """What this process holds, in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1024 / 1024


async def measure(base: str) -> float:
    sessions = Sessions(
        Limits(), claims=lambda target: {"ai.nimblebrain/facets": {}}, is_allowed=loopback
    )
    await sessions.read_resource(Target(0, 1, f"{base}/0/mcp"), "acme://facets/0", 10)
    gc.collect()
    before = resident_mib()
    for number in range(1, CONNECTIONS + 1):
        target = Target(number, 1, f"{base}/{number}/mcp")
        assert isinstance(await sessions.connect(target, 10), Connected)
        assert isinstance(await sessions.read_resource(target, "acme://facets/0", 10), dict)
    gc.collect()
    cost = resident_mib() - before
    await sessions.close()
    return cost


def loopback(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    return address.is_loopback


def main() -> None:
    with peers(latency_ms=0) as base:
        cost = asyncio.run(measure(base))
    head(f"memory of {CONNECTIONS} connections")
    each = cost * 1024 / CONNECTIONS
    row("all", f"{cost:.1f} MiB ({each:.0f} KiB each)", "60 MiB", is_met=cost <= 60)


if __name__ == "__main__":
    main()
