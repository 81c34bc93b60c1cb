"""How long until a dead server is seen to be dead, and one that is back to be back.

    .venv/bin/python -m benchmarks.outages

Ten servers end at one moment and come back at one moment, in front of three hosts at once: ours as
production runs it with one open page, ContextForge with its own settings, and ContextForge that
checks as often as we do and believes the first failure. Each is asked once a second what it shows.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.contextforge import contextforge
from benchmarks.tool_calls import line_of, started
from benchmarks.venvs import LeftOut
from tests.production.site import Site
from tests.services import services
from tests.stack import Stack

SERVERS = 10
EVERY_SECONDS = 1
READY_SECONDS, DEAD_SECONDS, BACK_SECONDS = 90, 300, 330
"""At the most. Everybody's servers stay away until all have seen it; longest is our own pause of
five minutes between two tries to reach a server that has been gone for long."""
QUICK = {"HEALTH_CHECK_INTERVAL": "30", "UNHEALTHY_THRESHOLD": "1"}


@dataclass(slots=True)
class Host:
    """live: how many of its servers a host shows as there; seen: what it said, and when."""

    name: str
    live: Callable[[], int]
    seen: list[tuple[float, int]] = field(default_factory=list)

    def watch(self, stop: threading.Event) -> None:
        while not stop.wait(EVERY_SECONDS):
            with contextlib.suppress(OSError, LeftOut):
                self.seen.append((time.monotonic(), self.live()))

    def until(self, number: int, seconds: float) -> None:
        """Wait until it shows so many, at most so long."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.seen and self.seen[-1][1] == number:
                return
            time.sleep(EVERY_SECONDS / 4)

    def delays(self, since: float, is_down: bool) -> list[float | None]:
        """Seconds until the first, second, ... server was seen gone, or back; None: it was not."""
        later = [(at - since, live) for at, live in self.seen if at >= since]
        return [
            next((at for at, live in later if (SERVERS - live if is_down else live) >= n), None)
            for n in range(1, SERVERS + 1)
        ]


@contextlib.contextmanager
def ours(url: str) -> Iterator[Host]:
    with (
        tempfile.TemporaryDirectory(prefix="outages-") as folder,
        services() as variables,
        Stack(Path(folder), variables, LOG_LEVEL="ERROR") as stack,
    ):
        site = Site(stack)
        for number in range(SERVERS):
            site.connect_server(f"server-{number}", f"{url}/{number}/mcp")
        listed = json.loads(stack.manage("connector", "list", "acme", "--json"))["connectors"]
        assert all(each["status"] == "ready" for each in listed), listed

        def live() -> int:
            # These servers have no facets: each row says that one of them is not ready.
            return SERVERS - len(site.rows(stack.webs[0].url))

        yield Host("ours, production-like, one page open: checks every 30 s", live)


@contextlib.contextmanager
def theirs(folder: Path, url: str, words: str, **settings: str) -> Iterator[Host]:
    # Without its cache of lists, so that it says what it knows.
    with contextforge(folder, REGISTRY_CACHE_ENABLED="false", **settings) as gateway:
        for number in range(SERVERS):
            gateway.add(f"server-{number}", f"{url}/{number}/mcp")

        def live() -> int:
            listed = gateway.ask("/gateways?include_inactive=true")
            found = listed["gateways"] if isinstance(listed, dict) else listed
            return sum(each["enabled"] and each["reachable"] for each in found)

        yield Host(f"ContextForge {gateway.version}, {words}", live)


def measure(hosts: Sequence[Host], peer: contextlib.ExitStack, port: str) -> tuple[float, float]:
    """Let the servers end and come back; when they did."""
    for host in hosts:
        host.until(SERVERS, READY_SECONDS)
    peer.close()
    gone, deadline = time.monotonic(), time.monotonic() + DEAD_SECONDS
    for host in hosts:
        host.until(0, deadline - time.monotonic())
    line_of(peer.enter_context(started("--peer", "--port", port)))
    back, deadline = time.monotonic(), time.monotonic() + BACK_SECONDS
    for host in hosts:
        host.until(SERVERS, deadline - time.monotonic())
    return gone, back


def words_of(delays: list[float | None], limit: float) -> str:
    known = sorted(float("inf") if delay is None else delay for delay in delays)
    if known[-1] == float("inf"):
        return f"{sum(each < known[-1] for each in known)} of {SERVERS} within {limit:.0f} s"
    return f"median {statistics.median(known):.0f} s, last {known[-1]:.0f} s"


def main() -> None:
    left_out = ""
    with contextlib.ExitStack() as ends:
        folder = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="outages-")))
        peer = ends.enter_context(contextlib.ExitStack())
        port = line_of(peer.enter_context(started("--peer")))
        url = f"http://127.0.0.1:{port}"
        hosts = [ends.enter_context(ours(url))]
        try:
            own = "its own settings: every 60 s, three failures"
            hosts.append(ends.enter_context(theirs(folder, url, own)))
            quick = "set to every 30 s, one failure"
            hosts.append(ends.enter_context(theirs(folder, url, quick, **QUICK)))
        except LeftOut as reason:
            left_out = f"\nLeft out: ContextForge: {reason}"
        stop = threading.Event()
        watching = [threading.Thread(target=host.watch, args=(stop,)) for host in hosts]
        for thread in watching:
            thread.start()
        try:
            gone, back = measure(hosts, peer, port)
        finally:
            stop.set()
            for thread in watching:
                thread.join()
    print(f"{SERVERS} servers, away for {back - gone:.0f} s.\n")
    print("| host | seen dead after | seen back after |\n|---|---|---|")
    for host in hosts:
        dead = words_of(host.delays(gone, is_down=True), DEAD_SECONDS)
        alive = words_of(host.delays(back, is_down=False), BACK_SECONDS)
        if "within" in dead:
            alive = "-"  # What it never took for dead says nothing.
        print(f"| {host.name} | {dead} | {alive} |")
    print(left_out)


if __name__ == "__main__":
    main()
