"""How long the checks of a connector took over the last day, as a small plot and in words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import Final

from connectors.models import Check, Connector

HOURS: Final = 24
BUCKETS: Final = 96
"""Quarters of an hour, so that each holds a check or two also while nobody watches."""

WIDTH: Final = BUCKETS * 2
HEIGHT: Final = 40

Seen = tuple[datetime, bool, int | None]
"""A check: when, whether it was answered, in how many milliseconds."""


@dataclass(frozen=True, slots=True)
class Plot:
    """lines: of an SVG of WIDTH by HEIGHT, as the points of polylines. failed: where checks failed,
    as x. Between lines nothing is known, or a check failed."""

    lines: tuple[str, ...]
    failed: tuple[int, ...]
    answered: int
    failures: int
    lowest_ms: int
    highest_ms: int
    median_ms: int
    last_failed_at: datetime | None

    width: int = WIDTH
    height: int = HEIGHT

    @property
    def checks(self) -> int:
        return self.answered + self.failures


def latency_plot(connector: Connector, now: datetime) -> Plot | None:
    """The plot of a connector's checks, out of one statement; None without any check."""
    since = now - timedelta(hours=HOURS)
    checks = Check.objects.filter(connector=connector, at__gt=since, at__lte=now).order_by("at")
    return plot_of(checks.values_list("at", "is_ok", "latency_ms"), now)


def plot_of(checks: Iterable[Seen], now: datetime) -> Plot | None:
    """Draw checks of the last day, the oldest first. Pure."""
    buckets: dict[int, list[int]] = {}
    failed: dict[int, datetime] = {}
    failures = 0
    since = now - timedelta(hours=HOURS)
    for at, is_ok, latency_ms in checks:
        bucket = min(BUCKETS - 1, int((at - since) / timedelta(hours=HOURS) * BUCKETS))
        if not is_ok:
            failures += 1
            failed[bucket] = at
        elif latency_ms is not None:
            buckets.setdefault(bucket, []).append(latency_ms)
    latencies = [each for found in buckets.values() for each in found]
    if not latencies and not failures:
        return None
    known = {each: median(found) for each, found in buckets.items() if each not in failed}
    return Plot(
        lines=tuple(_line(run, known) for run in _runs(sorted(known))),
        failed=tuple(_x(each) for each in sorted(failed)),
        answered=len(latencies),
        failures=failures,
        lowest_ms=min(latencies, default=0),
        highest_ms=max(latencies, default=0),
        median_ms=round(median(latencies)) if latencies else 0,
        last_failed_at=max(failed.values(), default=None),
    )


def _runs(buckets: list[int]) -> list[list[int]]:
    """The stretches of buckets without a gap."""
    runs: list[list[int]] = []
    for bucket in buckets:
        if runs and bucket == runs[-1][-1] + 1:
            runs[-1].append(bucket)
        else:
            runs.append([bucket])
    return runs


def _line(run: list[int], known: dict[int, float]) -> str:
    # What is drawn fills the height: one slow check must not flatten a day.
    highest = max(known.values())
    points = [
        f"{_x(each)},{round(HEIGHT - 2 - (HEIGHT - 4) * known[each] / (highest or 1), 1)}"
        for each in run
    ]
    # A line of one point draws nothing; one back to itself draws a dot.
    return " ".join(points if len(points) > 1 else points * 2)


def _x(bucket: int) -> int:
    return bucket * 2 + 1
