"""Who uses the host while it breaks: people with open pages, and an agent that calls a tool."""

from __future__ import annotations

import contextlib
import json
import random
import threading
import urllib.error
import urllib.request
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import uuid4

from tests.faults.truth import TOOL, Truth
from tests.production.site import Site

PAGES = 8


@dataclass
class Seen:
    """What people saw: how often which answer, and everything that must not be."""

    answers: Counter[str] = field(default_factory=Counter)
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
        while not self._ended.wait(0.2):
            try:
                rows = self.site.rows(self.site.stack.url)
            except Exception as error:
                self.seen.answers[_word_for(error)] += 1
                continue
            self.seen.answers["200"] += 1
            for row in rows:
                self._judge(row)

    def _judge(self, row: dict[str, Any]) -> None:
        if row["state"] != "ok":
            return
        at = datetime.fromisoformat(row["counted_at"]).timestamp()
        if not self._truths[row["app"]].may_have_said(row["count"], at):
            self.seen.wrong.append(f"{row['app']} {row['count']} of {row['counted_at']}")


def _word_for(error: Exception) -> str:
    return str(getattr(error, "code", type(error).__name__))


class Agent:
    """Calls a tool again and again, each time with an id of its own, and never the same twice."""

    def __init__(self, site: Site, truth: Truth) -> None:
        self.answers: Counter[str] = Counter()
        self.noted: list[str] = []
        self._truth = truth
        made = site.stack.manage("token", "create", "acme", "alice@example.com", "--json")
        self._headers = {
            "Authorization": f"Bearer {json.loads(made)['token']}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/call",
            "Mcp-Name": f"{truth.name}__{TOOL}",
        }
        self._url = f"{site.stack.url}/mcp/acme"
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._main, daemon=True)

    def __enter__(self) -> Agent:
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
            call = uuid4().hex
            try:
                said = self._call(call)
            except Exception as error:
                self.answers[_word_for(error)] += 1
                continue
            is_noted = "result" in said and not said["result"].get("isError")
            self.answers["noted" if is_noted else "refused"] += 1
            if is_noted:
                self.noted.append(call)

    def _call(self, call: str) -> dict[str, Any]:
        envelope = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        params = {"name": self._headers["Mcp-Name"], "arguments": {"id": call}, "_meta": envelope}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        request = urllib.request.Request(self._url, json.dumps(message).encode(), self._headers)
        with urllib.request.urlopen(request, timeout=15) as answer:
            body = answer.read().decode()
        # One event, or plain JSON.
        _, is_stream, data = body.partition("data: ")
        said: dict[str, Any] = json.loads(data if is_stream else body)
        return said
