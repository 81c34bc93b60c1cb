"""docs/performance.md: one section per benchmark, each of which may be taken anew alone."""

from __future__ import annotations

import os
import platform
import re
from datetime import UTC, datetime
from pathlib import Path

PLACE = Path(__file__).resolve().parent.parent / "docs" / "performance.md"
LOAD = "Under load, and a reconnect storm"
PREFACE = """# Performance

`make bench` and `make load ARGS="--seconds 1800 --write"` write this page; each section says when
and on what it was taken. Absolute times are of that machine. What carries over to others are the
ratios and sizes: whatever is compared was run in turns, in one run, against the same servers. A
target stands beside its figure, and one that was missed says so; where something else is quicker,
the table shows it. Why the targets are what they are: the benchmark's file in `benchmarks/`.
"""


def keep(title: str, text: str, order: list[str]) -> None:
    """Write a section in its place, and leave the others as they are."""
    found = _sections()
    found[title] = f"{text.strip()}\n\n*{_circumstances()}*"
    titles = sorted(found, key=lambda each: order.index(each) if each in order else len(order))
    parts = [PREFACE, *(f"## {each}\n\n{found[each]}\n" for each in titles)]
    PLACE.write_text("\n".join(parts), encoding="utf-8")


def _sections() -> dict[str, str]:
    if not PLACE.exists():
        return {}
    _, *parts = re.split(r"^## ", PLACE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    pairs = (part.split("\n", 1) for part in parts)
    return {title: text.strip() for title, text in pairs}


def _circumstances() -> str:
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    busy = os.getloadavg()[2]
    return f"Taken on {day}: {machine}; {busy:.1f} processes at work on average before its end."
