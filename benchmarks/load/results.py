"""What a run under load showed, as the tables of docs/performance.md."""

from __future__ import annotations

import argparse
import statistics
from collections import Counter
from dataclasses import dataclass, field

from benchmarks.load.processes import SERVICES
from benchmarks.report import head, note, row

_ABSENT = ("ConnectionRefusedError", "ConnectionResetError")


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
    """down: when the processes had ended; last: when the last page was live again; cut: how many
    pages lost their socket; opened: when sockets opened again; waited: seconds of each fetch."""

    started: float
    down: float
    last: float | None
    cut: int
    opened: list[float]
    waited: list[float]
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
    row("errors", _words(measured.errors), "none", is_met=not measured.errors)
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
            f"median {_seconds(median)}, worst {_seconds(worst)}; "
            f"{in_time} of {len(reached)} in time",
            f"{target} s",
            is_met=worst <= target,
        )


def _seconds(value: float) -> str:
    return "never" if value == float("inf") else f"{value:.2f} s"


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


def _words(errors: Counter[str]) -> str:
    return ", ".join(f"{word} x {times}" for word, times in errors.most_common()) or "none"


def _report_processes(measured: Measured) -> None:
    names = sorted(name for name in measured.memory[0] if name != "the servers")
    grown = {name: _growth([each[name] for each in measured.memory]) for name in names}
    judged = {name: share for name, share in grown.items() if name not in SERVICES}
    name = max(judged, key=lambda each: judged[each])
    row(
        "memory: median of the last quarter against that of the first, of each process",
        f"at most {judged[name]:+.1f} % ({name})",
        "1 % over 30 minutes",
        is_met=judged[name] <= 1,
    )
    print("\n| process | cores used | MiB at the start | at the end | last against first quarter |")
    print("|---|---|---|---|---|")
    first, last = measured.memory[0], measured.memory[-1]
    for name in names:
        print(
            f"| {name} | {measured.cores.get(name, 0):.2f} | {first[name]:.0f} | {last[name]:.0f} "
            f"| {grown[name]:+.1f} % |"
        )
    print(f"| (the servers under test) | {measured.cores.get('the servers', 0):.2f} | | | |")
    print("\nPostgreSQL and Valkey fill their caches and are not judged.")


def _growth(mib: list[float]) -> float:
    """Percent. Medians, so that one garbage collection more or less does not count."""
    quarter = max(1, len(mib) // 4)
    return (statistics.median(mib[-quarter:]) / statistics.median(mib[:quarter]) - 1) * 100


def report_storm(name: str, storm: Storm) -> None:
    print()
    head(f"reconnect storm: {name} restarted with all pages open")
    if storm.last is None:
        row("all live again", "not within a minute", "30 s", is_met=False)
    else:
        took = storm.last - storm.started
        words = f"{took:.1f} s, of which {storm.down - storm.started:.1f} s until it had ended"
        row("all live again, from the signal to stop on", words, "30 s", is_met=took <= 30)
    note("pages that lost their socket", f"{storm.cut}")
    seconds = Counter(int(at - storm.started) for at in storm.opened)
    spread = ", ".join(f"{seconds[each]} in second {each + 1}" for each in sorted(seconds))
    note("sockets opened again", spread or "none")
    if storm.waited:
        cuts = statistics.quantiles([*storm.waited, *storm.waited], n=20, method="inclusive")
        note("the panel's fetch meanwhile", f"p50 {cuts[9]:.2f} s, p95 {cuts[18]:.2f} s")
    # A fetch that finds nobody is made good when the socket opens; anything else is a fault.
    faults = Counter({w: n for w, n in storm.errors.items() if not w.endswith(_ABSENT)})
    note("fetches that found nobody", f"{storm.errors.total() - faults.total()}")
    row("other errors", _words(faults), "none", is_met=not faults)
