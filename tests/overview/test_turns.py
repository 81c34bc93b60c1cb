"""How many requests a web process works on at once."""

from __future__ import annotations

import asyncio
import threading

from asgiref.sync import async_to_sync, sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.http import HttpResponse
from django.test import override_settings
from django.urls import URLPattern, path

from overview.turns import TurnsHandler

AT_ONCE, SECONDS = 2, 20
BARE = {"ROOT_URLCONF": __name__, "MIDDLEWARE": [], "ALLOWED_HOSTS": ["*"]}


class Desk:
    """Where requests are at work until the gate opens."""

    def __init__(self):
        self.at_work, self.most, self.calls = 0, 0, 0
        self.lock, self.gate = threading.Lock(), threading.Event()
        self.begun, self.full = threading.Event(), threading.Event()

    def __call__(self, request):
        with self.lock:
            self.at_work += 1
            self.calls += 1
            self.most = max(self.most, self.at_work)
        self.begun.set()
        if self.at_work == AT_ONCE:
            self.full.set()
        self.gate.wait(SECONDS)
        with self.lock:
            self.at_work -= 1
        return HttpResponse(threading.current_thread().name)


def held(request):
    return urlpatterns.desk(request)


def awaiting(request):
    """The threads of a view and of what it waits for, as a page that calls a tool does."""
    name = async_to_sync(sync_to_async(lambda: threading.current_thread().name))()
    return HttpResponse(f"{threading.current_thread().name} {name}")


class Routes(list[URLPattern]):
    desk: Desk


urlpatterns = Routes([path("held/", held), path("awaiting/", awaiting)])


def asked(handler, path="/held/"):
    headers = [(b"host", b"testserver")]
    scope = {"type": "http", "method": "GET", "path": path, "query_string": b""}
    return ApplicationCommunicator(handler, {**scope, "headers": headers})


async def answer_of(communicator):
    start = await communicator.receive_output(SECONDS)
    body = await communicator.receive_output(SECONDS)
    await communicator.wait(SECONDS)
    return start["status"], body["body"]


@override_settings(**BARE)
def test_requests_beyond_those_at_work_wait_for_their_turn():
    urlpatterns.desk = desk = Desk()

    async def run():
        handler = TurnsHandler(AT_ONCE)
        waiting = [asked(handler) for _ in range(3 * AT_ONCE)]
        for each in waiting:
            await each.send_input({"type": "http.request", "body": b""})
        assert await asyncio.to_thread(desk.full.wait, SECONDS)
        threads = threading.active_count()
        desk.gate.set()
        return threads, await asyncio.gather(*map(answer_of, waiting))

    before = threading.active_count()
    threads, answers = asyncio.run(run())

    assert [status for status, _ in answers] == [200] * 3 * AT_ONCE
    assert desk.most == AT_ONCE
    assert len({name for _, name in answers}) <= AT_ONCE
    # Those at work, one for all signals, and the one that looked when all were at work.
    assert threads - before <= AT_ONCE + 2


@override_settings(**BARE)
def test_a_client_that_leaves_while_it_waits_costs_no_work():
    urlpatterns.desk = desk = Desk()

    async def run():
        handler = TurnsHandler(1)
        first, second, third = (asked(handler) for _ in range(3))
        await first.send_input({"type": "http.request", "body": b""})
        assert await asyncio.to_thread(desk.begun.wait, SECONDS)
        await second.send_input({"type": "http.request", "body": b""})
        await second.send_input({"type": "http.disconnect"})
        await second.wait(SECONDS)
        desk.gate.set()
        await third.send_input({"type": "http.request", "body": b""})
        assert (await answer_of(third))[0] == (await answer_of(first))[0] == 200

    asyncio.run(run())

    assert desk.calls == 2


@override_settings(**BARE)
def test_what_a_view_waits_for_is_done_in_its_own_thread():
    async def run():
        asking = asked(TurnsHandler(AT_ONCE), "/awaiting/")
        await asking.send_input({"type": "http.request", "body": b""})
        return await answer_of(asking)

    _, names = asyncio.run(run())
    assert names.split() == [b"turn_0", b"turn_0"]
