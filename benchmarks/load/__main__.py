"""The production-like set under load, and after it a reconnect storm.

    make load ARGS="--pages 1000 --workspaces 50 --connectors 2000 --rate 50 --seconds 60"

Two web processes, two workers and a clock run on PostgreSQL and Valkey, on loopback. All connectors
are read each minute. Counts change now and then; each open page fetches its panel after a push, as
the browser does. Meanwhile overviews are asked for at a steady rate. Then one web process is
restarted with all pages open, and after it both at once. Ends by itself, four minutes after
--seconds at the most; everything is new, and nothing is left behind. Exits with 1 when a target was
missed. --write puts the figures into docs/performance.md.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import uvloop

from benchmarks import report as told
from benchmarks.__main__ import ORDER
from benchmarks.document import LOAD, keep
from benchmarks.load.http import Http
from benchmarks.load.pages import Page, all_live
from benchmarks.load.processes import cpu_seconds, memory_mib, named
from benchmarks.load.results import Measured, Storm, report, report_storm
from overview.garbage import settle_collector
from tests.hosts import ROOT
from tests.services import services
from tests.stack import Stack, Web

OPENING_SECONDS = 120
STORM_SECONDS = 60
BETWEEN_STORMS_SECONDS = 35
"""Longer than a page's longest pause, so that it tries as quickly as it did the first time."""
LAST_CHANGES_SECONDS = 4
"""A change told at the very end still has this long to reach its pages."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=1000)
    parser.add_argument("--workspaces", type=int, default=50)
    parser.add_argument("--connectors", type=int, default=2000)
    parser.add_argument("--rate", type=float, default=50, help="overviews per second")
    parser.add_argument("--changes", type=float, default=120, help="of any count, per minute")
    parser.add_argument("--warm-up", type=float, default=90, help="seconds before measuring")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--write", action="store_true", help="into docs/performance.md")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.ExitStack() as ends:
        folder = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="load-")))
        log = folder / "changes"
        servers, url = ends.enter_context(running_servers(options, log))
        variables = ends.enter_context(services())
        stack = ends.enter_context(Stack(folder, variables, LOG_LEVEL="WARNING"))
        people = filled(options, stack, url)
        names = {process.pid: process.name for process in stack.processes}
        names |= {servers.pid: "the servers"}
        settle_collector()  # A pause of ours would be taken for one of theirs.
        output = io.StringIO()
        with contextlib.redirect_stdout(Both(output)):
            uvloop.run(Load(options, stack, people, log).run(names))
    if options.write:
        keep(LOAD, output.getvalue(), ORDER)
    if told.missed:
        sys.exit(f"Missed: {'; '.join(told.missed)}")


class Both(io.TextIOBase):
    """Writes to standard output and to what is kept of it."""

    def __init__(self, kept: io.StringIO) -> None:
        self._kept, self._shown = kept, sys.stdout

    def write(self, text: str) -> int:
        self._shown.write(text)
        self._shown.flush()
        return self._kept.write(text)


@contextlib.contextmanager
def running_servers(
    options: argparse.Namespace, log: Path
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    words = ["--servers", options.connectors, "--changes", options.changes, "--log", log]
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.load.servers", *map(str, words)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process, f"http://127.0.0.1:{process.stdout.readline().strip()}"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def filled(options: argparse.Namespace, stack: Stack, url: str) -> list[tuple[str, str]]:
    """Fill the tables; the workspace and the session of each page."""
    words = ["--servers", url]
    for name in ("workspaces", "connectors", "pages"):
        words += [f"--{name}", str(getattr(options, name))]
    made = subprocess.run(
        [sys.executable, "-m", "benchmarks.load.filling", *words],
        cwd=ROOT,
        env=stack.environment,
        check=True,
        stdout=subprocess.PIPE,
        timeout=300,
    )
    return [tuple(each) for each in json.loads(made.stdout)]


class Load:
    """One run: open the pages, warm up, measure, then the storm."""

    def __init__(
        self,
        options: argparse.Namespace,
        stack: Stack,
        people: list[tuple[str, str]],
        log: Path,
    ) -> None:
        self._options, self._stack, self._people, self._log = options, stack, people, log
        self.errors: Counter[str] = Counter()
        self._http = Http([web.port for web in stack.webs])
        self._pages = [Page(*each, self._http, self.errors) for each in people]

    async def run(self, names: dict[int | None, str]) -> None:
        tasks = [asyncio.create_task(page.run()) for page in self._pages]
        try:
            started = time.monotonic()
            last = await all_live(self._pages, OPENING_SECONDS)
            if last is None:
                raise TimeoutError(f"Not all pages opened within {OPENING_SECONDS} s")
            print(f"All pages opened within {last - started:.1f} s", file=sys.stderr, flush=True)
            # Overviews are asked for from here on, so that the warm-up warms them too.
            asking = asyncio.create_task(self._ask(self._options.warm_up + self._options.seconds))
            await asyncio.sleep(self._options.warm_up)
            measured = await self._measure(names)
            await asking
            await asyncio.sleep(LAST_CHANGES_SECONDS)
            measured.changes = self._changes(measured)
            report(self._options, measured)
            webs = self._stack.webs
            report_storm("one web process of two", await self._storm(webs[:1]))
            await asyncio.sleep(BETWEEN_STORMS_SECONDS)
            report_storm("both web processes at once", await self._storm(webs))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _measure(self, names: dict[int | None, str]) -> Measured:
        measured = Measured(time.monotonic(), errors=self.errors)
        self.errors.clear()
        self._latencies = measured.latencies
        pids = named(names)
        used = cpu_seconds(pids)
        samples = max(2, int(self._options.seconds // 10))
        measured.memory.append(memory_mib(pids))
        for _ in range(samples):
            await asyncio.sleep(self._options.seconds / samples)
            measured.memory.append(memory_mib(named(names)))
        measured.ended = time.monotonic()
        seconds = measured.ended - measured.started
        measured.cores = {
            name: (total - used[name]) / seconds for name, total in cpu_seconds(pids).items()
        }
        return measured

    async def _ask(self, seconds: float) -> None:
        """Ask for overviews at the rate, whatever the answers take."""
        self._latencies: list[float] = []
        started, tasks = time.monotonic(), set()
        for number in range(int(self._options.rate * seconds)):
            pause = started + number / self._options.rate - time.monotonic()
            await asyncio.sleep(max(0, pause))
            task = asyncio.create_task(self._overview(*random.choice(self._people)))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        await asyncio.gather(*tasks)

    async def _overview(self, slug: str, session: str) -> None:
        latencies, started = self._latencies, time.monotonic()
        try:
            answer = await self._http.get(f"/w/{slug}/", session)
        except (OSError, TimeoutError) as error:
            self.errors[f"overview: {type(error).__name__}"] += 1
            return
        latencies.append(time.monotonic() - started)
        if answer.status != 200:
            self.errors[f"overview: {answer.status}"] += 1

    def _changes(self, measured: Measured) -> list[list[float | None]]:
        """For each change told meanwhile, the seconds until each of its pages had it."""
        found = []
        for line in self._log.read_text(encoding="utf-8").splitlines():
            told = json.loads(line)
            if not measured.started <= told["at"] <= measured.ended:
                continue
            slug = f"team-{told['server'] % self._options.workspaces}"
            count = told["count"]
            found.append(
                [
                    page.seen[count] - told["at"] if count in page.seen else None
                    for page in self._pages
                    if page.slug == slug
                ]
            )
        return found

    async def _storm(self, webs: Sequence[Web]) -> Storm:
        """Restart web processes with all pages open."""
        self.errors.clear()
        ports = {web.port for web in webs}
        cut = [page for page in self._pages if page.port in ports]
        for page in self._pages:
            page.waited.clear()
        started = time.monotonic()
        await asyncio.to_thread(_stop, webs)
        # Those that have not noticed yet are no less gone.
        for page in cut:
            if page.port in ports and max(page.opened_at) < started:
                page.live_at = None
        down = time.monotonic()
        for web in webs:
            web.start()
        last = await all_live(self._pages, STORM_SECONDS)
        opened = [at for page in cut for at in page.opened_at if at >= started]
        waited = [seconds for page in self._pages for seconds in page.waited]
        return Storm(started, down, last, len(cut), opened, waited, self.errors.copy())


def _stop(webs: Sequence[Web]) -> None:
    for web in webs:
        web.ask_to_stop()
    for web in webs:
        web.stop()


if __name__ == "__main__":
    main()
