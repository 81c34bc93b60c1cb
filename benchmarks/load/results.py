"""What a run under load showed, as the tables of docs/performance.md."""

from __future__ import annotations

import argparse
import statistics
from collections import Counter
from dataclasses import dataclass, field

from benchmarks.report import head, row


@dataclass
class Measured:
    """Seconds by the monotonic clock; latencies of overviews in seconds."""

    started: float
    errors: Counter[str]
    ended: float = 0
    latencies: list[float] = field(default_factory=list)
    changes: list[list[float | None]] = field(default_factory=list)
    """For each change the delay of each of its pages; None: not seen."""
    memory: list[Counter[str]] = field(default_factory=list)
    """MiB by process, evenly over the run."""
    cores: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Storm:
    started: float
    down: float
    """When both web processes had ended."""
    first: float
    """When the first socket opened."""
    last: float | None
    """When the last page was live again."""
    opened: list[float]
    errors: Counter[str]


def report(options: argparse.Namespace, measured: Measured) -> None:
    print(
        f"{options.pages} open pages on {options.workspaces} workspaces, {options.connectors} "
        f"connectors with 5 facets read each minute, {options.rate:g} overviews/s, "
        f"{options.changes:g} changed counts a minute, for {options.seconds:g} s after "
        f"{options.warm_up:g} s of warm-up.\n"
    )
    head("under load")
    _report_changes(measured.changes)
    _report_overviews(options, measured)
    _report_errors("errors", measured.errors)
    _report_processes(measured)


def _report_changes(changes: list[list[float | None]]) -> None:
    reached = [_reached(delays) for delays in changes if delays]
    if not reached:
        return row("changes seen", "none", "at least one", is_met=False)
    for what, position, target in (("95 % of its pages", 0, 1), ("all of its pages", 1, 3)):
        worst = max(each[position] for each in reached)
        median = statistics.median(each[position] for each in reached)
        in_time = sum(each[position] <= target for each in reached)
        row(
            f"a change reaches {what}, from the server's answer on",
            f"median {median:.2f} s, worst {worst:.2f} s; {in_time} of {len(reached)} in time",
            f"{target} s",
            is_met=worst <= target,
        )


def _reached(delays: list[float | None]) -> tuple[float, float]:
    """After how long 95 % of the pages had a change, and all."""
    known = sorted(float("inf") if delay is None else delay for delay in delays)
    return known[-(-len(known) * 95 // 100) - 1], known[-1]


def _report_overviews(options: argparse.Namespace, measured: Measured) -> None:
    if len(measured.latencies) < 2:
        return row("overview", "no answers", "250 ms", is_met=False)
    cuts = statistics.quantiles(measured.latencies, n=100, method="inclusive")
    p50, p95 = cuts[49] * 1000, cuts[94] * 1000
    row(
        f"overview at {options.rate:g} requests/s",
        f"p50 {p50:.0f} ms, p95 {p95:.0f} ms, worst {max(measured.latencies) * 1000:.0f} ms",
        "p95 250 ms",
        is_met=p95 <= 250,
    )


def _report_errors(name: str, errors: Counter[str]) -> None:
    words = ", ".join(f"{word} x {times}" for word, times in errors.most_common()) or "none"
    row(name, words, "none", is_met=not errors)


def _report_processes(measured: Measured) -> None:
    first, last = measured.memory[0], measured.memory[-1]
    ours = [name for name in first if name != "the servers"]
    warm = measured.memory[len(measured.memory) // 3]
    grown = {name: (last[name] / warm[name] - 1) * 100 for name in ours}
    total = (sum(last[name] for name in ours) / sum(warm[name] for name in ours) - 1) * 100
    row(
        "growth of memory in the last two thirds",
        f"{total:+.1f} % in all",
        "1 % over 30 minutes",
        is_met=total <= 1,
    )
    print("\n| process | cores used | MiB at the start | at the end | last two thirds |")
    print("|---|---|---|---|---|")
    for name in sorted(ours):
        print(
            f"| {name} | {measured.cores.get(name, 0):.2f} | {first[name]:.0f} | {last[name]:.0f} "
            f"| {grown[name]:+.1f} % |"
        )
    print(f"| (the servers under test) | {measured.cores.get('the servers', 0):.2f} | | | |")


def report_storm(storm: Storm) -> None:
    print()
    head("reconnect storm: both web processes restarted with all pages open")
    if storm.last is None:
        row("all live again", "not within two minutes", "30 s", is_met=False)
    else:
        took = storm.last - storm.started
        row(
            "all live again, from the signal to stop on", f"{took:.1f} s", "30 s", is_met=took <= 30
        )
        print(f"| of these until both had ended | {storm.down - storm.started:.1f} s | | |")
        print(f"| until the first page was back | {storm.first - storm.started:.1f} s | | |")
    print(f"| sockets opened in the busiest second | {_busiest(storm.opened)} | | |")
    _report_errors("errors meanwhile", storm.errors)


def _busiest(opened: list[float]) -> int:
    seconds = Counter(int(at - min(opened)) for at in opened)
    return max(seconds.values(), default=0)
