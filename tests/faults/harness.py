"""Break one thing after the other while pages are open, and see whether the host comes back.

    python -m tests.faults [--seed N] [--faults N] [--only NAME]…

Two web processes, two workers and a clock on PostgreSQL and Valkey read three servers whose counts
keep changing. At random moments one of all these is killed, stopped, cut or slowed, and comes back
some seconds later. What was done, what was seen meanwhile and after it, and what each refused
request came of, is printed; the exit status is 1 when a promise was broken or a refusal has no
cause. The same seed does the same things, at about the same times.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from tests.faults.outages import LIVE_SECONDS, RECONNECTED_SECONDS, Outages, Refusal
from tests.faults.people import PAGES, Caller, Pages
from tests.faults.truth import Truth, truth_server
from tests.production.site import Site
from tests.servers.raw import Drop
from tests.services import Service, postgres_service, valkey_service
from tests.stack import Stack, is_ready

SETTLED_SECONDS = 30
"""After everything answers: no lease stands, nothing is being checked, and what is shown is right.
"""
SERVERS = 3


@dataclass
class Fault:
    """Something to break, and how it is mended."""

    name: str
    breaks: Callable[[], object]
    mends: Callable[[], object]


def faults_of(stack: Stack, services: list[Service], truths: list[Truth]) -> list[Fault]:
    found = []
    for process in stack.processes:
        found.append(Fault(f"kill {process.name}", process.kill, process.start))
        found.append(Fault(f"stop {process.name}", process.stop, process.start))
    valkey, postgres = services
    found.append(Fault("kill valkey", lambda: valkey.stop(signal.SIGKILL), valkey.start))
    found.append(Fault("stop postgres", postgres.stop, postgres.start))
    # An immediate shutdown: as a crash, with recovery at the next start.
    found.append(Fault("crash postgres", lambda: postgres.stop(signal.SIGQUIT), postgres.start))
    for truth in truths:
        found.append(Fault(f"cut {truth.name}", _intercept(truth, _cut), _intercept(truth, None)))
        found.append(Fault(f"slow {truth.name}", _intercept(truth, _slow), _intercept(truth, None)))
    return found


def _intercept(truth: Truth, handler: Callable[[Any], Any] | None) -> Callable[[], None]:
    def do() -> None:
        truth.server.intercept = handler

    return do


def _cut(_: Any) -> None:
    raise Drop


async def _slow(_: Any) -> None:
    await asyncio.sleep(3)


class Run:
    """One run of the harness.

    only: the names of the faults to choose from; none means all. haste: how much shorter than
    usual each of them is, and the time to the next one.
    """

    def __init__(
        self,
        seed: int,
        faults: int,
        only: Sequence[str] = (),
        haste: float = 1,
        say: Callable[[str], object] = print,
    ) -> None:
        self._random, self._faults, self._say = random.Random(seed), faults, say
        self._only, self._haste = only, haste
        self._outages = Outages()
        self.problems: list[str] = []
        say(f"seed {seed}, {faults} faults")

    def run(self, folder: Path) -> list[str]:
        """Do it; the promises that were broken, in words."""
        with contextlib.ExitStack() as ends:
            valkey = ends.enter_context(valkey_service())
            postgres = ends.enter_context(postgres_service())
            variables = {"REDIS_URL": valkey.url, "DATABASE_URL": postgres.url}
            variables |= {"FACET_FRESH_SECONDS": "2", "FACET_READ_TIMEOUT_SECONDS": "1"}
            stack = ends.enter_context(Stack(folder, variables))
            truths = [ends.enter_context(truth_server(f"server{n}")) for n in range(SERVERS)]
            site = Site(stack)
            for truth in truths:
                site.connect_server(truth.name, truth.server.url)
            pages = ends.enter_context(Pages(site, truths))
            caller = ends.enter_context(Caller(site, truths[0]))
            self._await("the start", 60, lambda: pages.are_connected and _is_right(site, truths))
            for fault in self._chosen(faults_of(stack, [valkey, postgres], truths)):
                self._break(fault, truths)
            self._come_back(stack, pages, site, truths, postgres.url)
            self._report(pages, caller)
        return self.problems

    def _chosen(self, faults: list[Fault]) -> Iterator[Fault]:
        """Each once before any comes twice."""
        faults = [each for each in faults if not self._only or each.name in self._only]
        left: list[Fault] = []
        for _ in range(self._faults):
            left = left or self._random.sample(faults, len(faults))
            yield left.pop()

    def _break(self, fault: Fault, truths: list[Truth]) -> None:
        """Break it, let the counts change meanwhile, and mend it."""
        seconds = self._random.uniform(0.3, 4) / self._haste
        pause = self._random.uniform(0.2, 3) / self._haste
        self._say(f"{time.strftime('%H:%M:%S')} {fault.name}, for {seconds:.1f} s")
        with self._outages.one(fault.name):
            fault.breaks()
            time.sleep(seconds)
            self._random.choice(truths).change(self._random.randint(1, 99))
            fault.mends()
        time.sleep(pause)

    def _come_back(
        self, stack: Stack, pages: Pages, site: Site, truths: list[Truth], database_url: str
    ) -> None:
        self._await(
            "everything answers and every page is connected",
            LIVE_SECONDS,
            lambda: all(is_ready(web.url) for web in stack.webs) and pages.are_connected,
        )
        for truth in truths:
            truth.change(self._random.randint(100, 199))
        shown = "every count that is shown is right"
        self._await(shown, SETTLED_SECONDS, lambda: _is_right(site, truths, but_failed=True))
        self._await("no lease stands", SETTLED_SECONDS, lambda: not _stuck(database_url))
        ready = "every server is connected again"
        self._await(ready, RECONNECTED_SECONDS, lambda: _is_right(site, truths))

    def _await(self, what: str, seconds: float, look: Callable[[], bool]) -> None:
        started = time.monotonic()
        while time.monotonic() - started < max(90, seconds):
            with contextlib.suppress(Exception):
                if look():
                    break
            time.sleep(0.1)
        took = time.monotonic() - started
        self._say(f"{what}: after {took:.1f} s, at most {seconds} s are promised")
        if took > seconds:
            self.problems.append(f"{what}: {took:.1f} s")

    def _report(self, pages: Pages, caller: Caller) -> None:
        seen = pages.seen
        self._say(f"{PAGES} pages reconnected {seen.reconnects} times")
        self._say(f"pages that were served: {seen.pages}; wrong counts: {len(seen.wrong)}")
        self._explain("pages", seen.refusals)
        self._say(f"calls that were served: {len(caller.noted)}")
        self._explain("calls", caller.refusals)
        self._say(f"calls that ran twice or were lost: {len(caller.wrongs)}")
        self.problems += [f"wrong: {each}" for each in seen.wrong[:5]]
        self.problems += [f"a call: {each}" for each in caller.wrongs[:5]]

    def _explain(self, what: str, refusals: list[Refusal]) -> None:
        causes, unexplained = self._outages.explain(refusals)
        self._say(f"{what} that were refused: {len(refusals)}")
        for words, times in causes.most_common():
            self._say(f"  {words} x {times}")
        for each in unexplained[:5]:
            at = time.strftime("%H:%M:%S", time.localtime(each.asked_at))
            seconds = each.answered_at - each.asked_at
            words = f"{what}: {each.why!r} at {at} after {seconds:.1f} s, and nothing explains it"
            self.problems.append(words)


def _is_right(site: Site, truths: list[Truth], *, but_failed: bool = False) -> bool:
    """Whether the rows are what servers count. but_failed: those that wait for a retry apart."""
    rows = {row["app"]: row for row in site.rows(site.stack.url)}
    waits = {app for app, row in rows.items() if but_failed and row["state"] == "failed"}
    expected = {truth.name: truth.count for truth in truths if truth.name not in waits}
    return {app: row["count"] for app, row in rows.items() if app not in waits} == expected


def _stuck(database_url: str) -> bool:
    """Whether a read, a listing or a check has been under way for longer than it may."""
    with psycopg.connect(database_url) as connection:
        return any(
            connection.execute(
                f"SELECT 1 FROM {table} WHERE {column} < now() - interval '5 seconds' LIMIT 1"
            ).fetchone()
            for table, column in [
                ("overview_storedfacet", "lease_until"),
                ("connectors_listing", "lease_until"),
                ("connectors_connector", "check_lease_until"),
            ]
        )
