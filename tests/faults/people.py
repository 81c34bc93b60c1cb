"""Who uses the host while it breaks: people with open pages, and an agent that calls a tool."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import uuid4

from tests.faults.outages import Refusal, why, why_refused
from tests.faults.truth import TOOL, Truth
from tests.production.agent import Agent, was_done
from tests.production.site import Site

PAGES = 8
PANEL = "data-row"


@dataclass
class Seen:
    """What people saw: how often a page, and everything that must not be."""

    pages: int = 0
    refusals: list[Refusal] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    reconnects: int = 0


class Pages:
    """Open pages: sockets that reconnect as a page's script does, and rows that are asked for."""

    def __init__(self, site: Site, truths: list[Truth]) -> None:
        self.site, self.seen = site, Seen()
        self._truths = {truth.name: truth for truth in truths}
        self._ended = threading.Event()
        self._open: set[int] = set()
        self._threads = [
            threading.Thread(target=self._hold, args=(number,), daemon=True)
            for number in range(PAGES)
        ]
        self._threads.append(threading.Thread(target=self._ask, daemon=True))

    def __enter__(self) -> Pages:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(15)

    @property
    def are_connected(self) -> bool:
        return len(self._open) == PAGES

    def _hold(self, number: int) -> None:
        while not self._ended.is_set():
            with contextlib.suppress(Exception), self.site.page(self.site.stack.front.port) as page:
                page.recv(timeout=10)
                self._open.add(number)
                while not self._ended.is_set():
                    with contextlib.suppress(TimeoutError):
                        page.recv(timeout=1)
            self._open.discard(number)
            self.seen.reconnects += 1
            self._ended.wait(random.uniform(0.2, 1))

    def _ask(self) -> None:
        url = self.site.stack.url
        while not self._ended.wait(0.2):
            asked_at = time.time()
            try:
                rows = self.site.rows(url)
                page = self.site.get("/w/acme/", url)
            except Exception as error:
                self.seen.refusals.append(Refusal(why(error), asked_at, time.time()))
                continue
            self.seen.pages += 1
            if PANEL not in page:
                self.seen.wrong.append("a page without its panel")
            for row in rows:
                self._judge(row)

    def _judge(self, row: dict[str, Any]) -> None:
        if row["state"] != "ok":
            return
        at = datetime.fromisoformat(row["counted_at"]).timestamp()
        if not self._truths[row["app"]].may_have_said(row["count"], at):
            self.seen.wrong.append(f"{row['app']} {row['count']} of {row['counted_at']}")


class Caller:
    """Calls a tool again and again, each time with an id of its own, and never the same twice."""

    def __init__(self, site: Site, truth: Truth) -> None:
        self.refusals: list[Refusal] = []
        self.noted: list[str] = []
        self._url, self._agent, self._truth = site.stack.url, Agent(site.stack), truth
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._main, daemon=True)

    def __enter__(self) -> Caller:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(15)

    @property
    def wrongs(self) -> list[str]:
        """Calls that ran twice, and those that were answered well and did not run once."""
        twice = [
            f"{call} ran {times} times" for call, times in self._truth.calls.items() if times > 1
        ]
        return twice + [f"{call} is lost" for call in self.noted if self._truth.calls[call] != 1]

    def _main(self) -> None:
        while not self._ended.wait(0.2):
            call, asked_at = uuid4().hex, time.time()
            try:
                said = self._agent.call(self._url, f"{self._truth.name}__{TOOL}", {"id": call})
                reason = None if was_done(said) else why_refused(said)
            except Exception as error:
                reason = why(error)
            if reason is None:
                self.noted.append(call)
            else:
                self.refusals.append(Refusal(reason, asked_at, time.time()))
