"""Two web processes, two workers and two clocks on real services behave as one host."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from itertools import pairwise

import pytest

from tests.overview.factories import entry
from tests.production.conftest import FRESH_SECONDS, LISTING_SECONDS
from tests.servers.raw import Reply, event, forever, raw_server

TELLING = {"resources": {"subscribe": True}, "extensions": {"ai.nimblebrain/facets": {}}}
LEASE_SECONDS = 12
"""Of a read: twice its timeout of 1 s, and the margin."""


class Counting:
    """A server of two facets that offers to tell: what they count, and when each was read."""

    def __init__(self, server):
        self.server = server
        self.count = 3
        self.reads = {}
        self.listings = []
        self.held = threading.Event()
        self.is_holding = False
        server.on("resources/list", self._list)
        server.on("resources/read", self._read)
        server.on("subscriptions/listen", self._listen)

    def _list(self, _):
        self.listings.append(time.monotonic())
        return {"resources": [entry("drafts"), entry("replies")]}

    def _listen(self, request):
        async def body():
            method = "notifications/subscriptions/acknowledged"
            message = {"jsonrpc": "2.0", "method": method, "params": request.params}
            yield event(json.dumps(message).encode())
            await forever()

        return Reply(body=body(), content_type="text/event-stream")

    async def _read(self, request):
        uri = request.params["uri"]
        self.reads.setdefault(uri, []).append(time.monotonic())
        if self.is_holding:
            self.held.set()
            await forever()
        text = json.dumps({"count": self.count})
        return {"contents": [{"uri": uri, "mimeType": "application/json", "text": text}]}


@pytest.fixture(scope="module")
def connected(site):
    with raw_server(capabilities=TELLING) as server:
        counting = Counting(server)
        site.connect_server("outbound", server.url)
        yield counting


def until(look, seconds=20):
    """Look at both web processes in turn until it is so; what was seen."""
    deadline = time.monotonic() + seconds
    while not (seen := look()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)
    return seen


def counts(site, web=0):
    url = site.stack.webs[web].url
    return [row["count"] for row in site.rows(url) if row["state"] == "ok"]


def shortest(times):
    return min(later - earlier for earlier, later in pairwise(times))


@pytest.mark.requirement("F-111", "F-059", "F-117")
def test_all_processes_together_read_list_and_listen_as_one(site, connected):
    looks = iter(range(10**6))
    one, other = site.stack.webs
    with site.page(one.port), site.page(other.port):
        until(lambda: counts(site, next(looks) % 2) == ["3", "3"])
        until(lambda: counts(site, next(looks) % 2) and len(connected.listings) == 3)
        listened = connected.server.count("subscriptions/listen")
    assert len(connected.reads) == 2
    for times in connected.reads.values():
        # From request to request: a count is fresh from when its answer came.
        assert shortest(times) >= FRESH_SECONDS
    assert shortest(connected.listings) >= LISTING_SECONDS
    # Two clocks had two workers look for servers to listen to, three times at least.
    assert listened == 1


@pytest.mark.requirement("F-114")
def test_a_change_reaches_the_pages_of_both_web_processes(site, connected):
    one, other = site.stack.webs
    with site.page(one.port) as first, site.page(other.port) as second:
        until(lambda: len(counts(site)) == 2)
        before = json.loads(first.recv(timeout=5))["version"]
        connected.count = 4
        for web, page in enumerate((first, second)):
            until(lambda page=page: json.loads(page.recv(timeout=15))["version"] > before)
            until(lambda web=web: counts(site, web) == ["4", "4"])


@pytest.mark.requirement("F-118")
def test_a_killed_worker_blocks_a_count_no_longer_than_its_lease(site, connected):
    with site.page(site.stack.webs[0].port):
        until(lambda: len(counts(site)) == 2)
        connected.is_holding = True
        assert connected.held.wait(15)
        for worker in site.stack.workers:
            worker.kill()
        killed_at = time.monotonic()
        connected.is_holding, connected.count = False, 5
        for worker in site.stack.workers:
            worker.start()
        until(lambda: counts(site) == ["5", "5"], LEASE_SECONDS + 10)
        assert time.monotonic() - killed_at < LEASE_SECONDS + 10


def test_any_web_process_gives_the_metrics_of_all(site):
    def reads(web):
        request = urllib.request.Request(f"{site.stack.webs[web].url}/metrics")
        request.add_header("Authorization", "Bearer scrape-me")
        with urllib.request.urlopen(request, timeout=10) as answer:
            said = answer.read().decode().splitlines()
        name = 'overview_facet_reads_total{outcome="counted"} '
        return next(float(line.removeprefix(name)) for line in said if line.startswith(name))

    assert reads(0) > 0
    until(lambda: reads(0) == reads(1))
