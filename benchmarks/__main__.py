"""Every benchmark in turn; each writes its section of docs/performance.md.

    make bench                      all of them, three quarters of an hour at the most
    make bench ARGS="gateways"      only these

One that fails or takes too long is told at the end; the section that it wrote last stays.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass

from benchmarks.document import LOAD, keep

ENDING_SECONDS = 30
"""For one that is told to end: it stops what it started."""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """minutes: at the most."""

    module: str
    title: str
    about: str
    minutes: float


BENCHMARKS = (
    Benchmark(
        "overview_page",
        "The overview",
        "What the page of 50 connectors costs the browser and the server. An empty page goes "
        "through the same middleware, session and membership, with nothing inside.",
        2,
    ),
    Benchmark(
        "growth",
        "From 10 to 1 000 connectors",
        "What the page and the worker's cycle cost as a workspace grows.",
        4,
    ),
    Benchmark(
        "live_update",
        "A live change in the browser",
        "What one push costs Chromium's main thread, script, style and layout.",
        2,
    ),
    Benchmark(
        "admin_page",
        "The overview beside ContextForge's admin page",
        "Both show 50 MCP servers. ContextForge's page also administers tools, prompts and "
        "resources, so that it has more to load; ours shows what needs attention.",
        5,
    ),
    Benchmark(
        "outages",
        "A server that dies, and comes back",
        "How long people look at a wrong status. How often servers are checked is a choice: "
        "quicker costs each server more requests.",
        14,
    ),
    Benchmark(
        "facet_reads",
        "Reading facets",
        "The worker's whole path beside clients that read and keep nothing.",
        3,
    ),
    Benchmark("memory", "Memory of open connections", "To that many servers at once.", 2),
    Benchmark(
        "collector",
        "Python's garbage collector",
        "Reads from many connected servers, by the sessions alone, without the database.",
        3,
    ),
    Benchmark(
        "tool_calls",
        "A tool call, with and without resource arguments",
        "Through our endpoint, beside a bare relay: the SDK's server over one client of the SDK.",
        3,
    ),
    Benchmark(
        "gateways",
        "A tool call and a resource read through other gateways",
        "From one client to one server, through each that the package registry has.",
        6,
    ),
    Benchmark(
        "uri_templates",
        "Who owns a URI",
        "Matching URIs against RFC 6570 templates of servers, hostile ones too.",
        2,
    ),
)
ORDER = [LOAD, *(each.title for each in BENCHMARKS)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="*", metavar="BENCHMARK")
    only = parser.parse_args().only
    if unknown := set(only) - {each.module for each in BENCHMARKS}:
        known = ", ".join(each.module for each in BENCHMARKS)
        parser.error(f"There is no {', '.join(sorted(unknown))}. There are: {known}.")
    failed = [
        each.module for each in BENCHMARKS if (each.module in only or not only) and not taken(each)
    ]
    if failed:
        sys.exit(f"These did not finish: {', '.join(failed)}")


def taken(benchmark: Benchmark) -> bool:
    """Run one and write down what it printed."""
    print(f"-- {benchmark.module}", flush=True)
    started = time.monotonic()
    words = [sys.executable, "-m", f"benchmarks.{benchmark.module}"]
    # A session of its own, so that what it started ends with it.
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        output, _ = process.communicate(timeout=benchmark.minutes * 60)
    except BaseException as error:
        _end(process)
        if isinstance(error, subprocess.TimeoutExpired):
            print(f"did not end within {benchmark.minutes} minutes", file=sys.stderr)
            return False
        raise
    print(f"{output}\n({time.monotonic() - started:.0f} s)", flush=True)
    if process.returncode == 0:
        text = output if "|---" in output else f"```\n{output.strip()}\n```"
        keep(benchmark.title, f"{benchmark.about}\n\n{text}", ORDER)
    return process.returncode == 0


def _end(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGINT)
    try:
        process.communicate(timeout=ENDING_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


if __name__ == "__main__":
    main()
