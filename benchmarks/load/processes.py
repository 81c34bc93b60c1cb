"""What each process of the set holds and has used, from /proc."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

SERVICES = ("postgres", "valkey-server")
TICKS = os.sysconf("SC_CLK_TCK")


def named(known: Mapping[int | None, str]) -> dict[int, str]:
    """The names of this process's descendants: those known, and the services with their own."""
    parents, names = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            comm, _, rest = (folder / "stat").read_text().partition("(")[2].rpartition(")")
            parents[int(folder.name)], names[int(folder.name)] = int(rest.split()[1]), comm
    found = {}
    for pid, comm in names.items():
        name = known.get(pid) or (comm if comm in SERVICES else None)
        if name and _is_below(pid, os.getpid(), parents):
            found[pid] = name
    return found


def _is_below(pid: int, ancestor: int, parents: Mapping[int, int]) -> bool:
    while pid and pid != ancestor:
        pid = parents.get(pid, 0)
    return pid == ancestor


def memory_mib(pids: Mapping[int, str]) -> Counter[str]:
    """MiB by name: each process's own share, what several map counted in parts."""
    held: Counter[str] = Counter()
    for pid, name in pids.items():
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    held[name] += int(line.split()[1]) / 1024
    return held


def cpu_seconds(pids: Mapping[int, str]) -> Counter[str]:
    """CPU seconds by name since each process began."""
    used: Counter[str] = Counter()
    for pid, name in pids.items():
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            used[name] += (int(fields[11]) + int(fields[12])) / TICKS
    return used
