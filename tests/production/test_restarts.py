"""A new version goes in without a moment in which nobody answers: one process after the other."""

from __future__ import annotations

import json
import threading
import time
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from itertools import pairwise

import pytest

from tests.production.agent import was_done
from tests.production.conftest import FRESH_SECONDS
from tests.production.test_many_processes import until
from tests.servers.raw import raw_server
from tests.stack import Web, is_ready

LATE_SECONDS = 25
"""A service manager does not wait until a worker is there: both may be starting at once."""


@pytest.fixture
def busy(site):
    """A server of one facet and one tool; when the facet was read."""
    reads = []

    def read(request):
        reads.append(time.monotonic())
        text = json.dumps({"count": 3})
        return {"contents": [{"uri": request.params["uri"], "text": text}]}

    marks = {"ai.nimblebrain/facets": {"level": "warning"}}
    entry = {"uri": "busy://due", "name": "due", "title": "Due", "mimeType": "application/json"}
    capabilities = {"resources": {}, "tools": {}, "extensions": {"ai.nimblebrain/facets": {}}}
    with raw_server(capabilities=capabilities) as server:
        server.on("resources/list", {"resources": [{**entry, "_meta": marks}]})
        server.on("resources/read", read)
        server.on("tools/list", {"tools": [{"name": "note", "inputSchema": {"type": "object"}}]})
        server.on("tools/call", {"content": []})
        site.connect_server("busy", server.url)
        yield reads


class Asking:
    """Somebody who asks for the same again and again, and notes what was no answer."""

    def __init__(self, ask):
        self._ask, self._ended = ask, threading.Event()
        self.answered, self.failures = 0, []
        self._thread = threading.Thread(target=self._main, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join(20)

    def _main(self):
        while not self._ended.wait(0.05):
            try:
                assert self._ask(), "refused"
                self.answered += 1
            except Exception as error:
                self.failures.append(f"{time.strftime('%X')} {error!r}")


def restart(process):
    """Restart it; its exit status."""
    status = process.stop()
    process.start()
    return status


def restart_web(web):
    """The next one has its turn when this one answers."""
    status = restart(web)
    until(lambda: is_ready(web.url, "/healthz"), 60)
    return status


@pytest.mark.requirement("F-111")
def test_processes_restart_one_after_the_other_while_people_and_agents_are_served(
    site, agent, busy
):
    stack = site.stack
    url = stack.url
    until(lambda: busy and was_done(agent.call(url, "busy__note", {})))
    with (
        site.page(stack.front.port),
        Asking(lambda: "Acme" in site.get("/w/acme/", url)) as people,
        Asking(lambda: was_done(agent.call(url, "busy__note", {}))) as agents,
    ):
        ends = [restart(worker) for worker in stack.workers]
        ends += [restart_web(web) for web in stack.webs]
        last = len(busy)
        until(lambda: len(busy) > last, LATE_SECONDS)
    assert (people.failures, agents.failures) == ([], [])
    assert min(people.answered, agents.answered) > 20
    # uvicorn ends with the signal that stopped it.
    assert ends == [0, 0, -15, -15]
    gaps = [later - earlier for earlier, later in pairwise(busy)]
    assert max(gaps) < FRESH_SECONDS + LATE_SECONDS


def posting(connection):
    """Somebody's POST, on a connection that is kept, as a proxy keeps its own."""

    def post():
        connection.request("POST", "/sign-in/")
        with connection.getresponse() as answer:
            answer.read()
            # It shows no form's token.
            return answer.status == 403

    return post


def test_no_post_is_lost_when_a_process_says_that_it_stops_before_it_does(site, tmp_path):
    """A proxy must not send a POST again: it has to have stopped sending any by then."""
    environment = {**site.stack.environment, "WEB_DRAIN_SECONDS": "3"}
    web = Web("draining", environment, tmp_path)
    web.start()
    try:
        until(lambda: is_ready(web.url, "/readyz/process"), 60)
        with ExitStack() as proxied:
            kept = [closing(HTTPConnection("127.0.0.1", web.port, timeout=10)) for _ in range(8)]
            posts = [Asking(posting(proxied.enter_context(each))) for each in kept]
            for each in posts:
                proxied.enter_context(each)
            until(lambda: all(each.answered for each in posts))
            web.ask_to_stop()
            until(lambda: not is_ready(web.url, "/readyz/process"))
            answered = [each.answered for each in posts]
            # One may have been asked before the stop; the one after it was not.
            until(lambda: all(p.answered > n + 1 for p, n in zip(posts, answered, strict=True)))
            assert is_ready(web.url, "/healthz")
        assert [each.failures for each in posts] == [[]] * len(posts)
        assert web.process.wait(10) == -15
    finally:
        web.stop()
