"""The event loop beside a process's threads."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from channels.layers import get_channel_layer

from workspaces.background import BackgroundLoop, background, close_background, run_background_on


@pytest.fixture
def loop():
    loop = BackgroundLoop("test-loop")
    yield loop
    loop.close()


async def thread_name():
    return threading.current_thread().name


def test_threads_get_their_results_from_the_one_loop(loop):
    with ThreadPoolExecutor(8) as threads:
        names = list(threads.map(lambda _: loop.run(thread_name(), 5), range(40)))
    assert set(names) == {"test-loop"}


def test_a_deadline_cancels_the_work_on_the_loop(loop):
    ended = threading.Event()

    async def hang():
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    with pytest.raises(TimeoutError):
        loop.run(hang(), 0.05)
    assert ended.wait(2)


def test_an_exception_reaches_the_thread_that_asked(loop):
    async def fail():
        raise LookupError("why")

    with pytest.raises(LookupError, match="why"):
        loop.run(fail(), 5)


def test_another_loop_awaits_without_blocking_itself(loop):
    async def elsewhere():
        return await loop.result_of(thread_name())

    assert asyncio.run(elsewhere()) == "test-loop"


def test_the_loop_does_not_wait_for_itself(loop):
    async def wrong():
        loop.run(thread_name(), 1)

    with pytest.raises(RuntimeError, match="itself"):
        loop.run(wrong(), 5)


def test_closing_ends_what_still_runs():
    loop = BackgroundLoop("closing")
    future = loop.submit(asyncio.Event().wait())
    loop.close()
    loop.close()
    assert future.cancelled()


def test_a_process_has_one_loop_until_it_is_closed():
    first = background()
    assert background() is first
    close_background()
    assert background() is not first
    close_background()


def test_a_web_servers_loop_takes_the_place_of_the_one_before_it():
    before = background()
    # Redis' layer is on the loop from then on, and wants to say goodbye when it closes.
    before.run(get_channel_layer().group_send("nobody", {"type": "nothing"}), 5)

    async def serving():
        run_background_on(asyncio.get_running_loop())
        here = background()
        async with asyncio.timeout(5):
            own = await here.result_of(thread_name())
            of_thread = await asyncio.to_thread(here.run, thread_name(), 5)
        run_background_on(None)
        return here, own, of_thread

    here, own, of_thread = asyncio.run(serving())
    assert own == of_thread == threading.current_thread().name
    assert background() not in (before, here)
    close_background()
