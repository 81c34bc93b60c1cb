"""SIGTERM reaches the web server when those who send it requests had time to notice."""

from __future__ import annotations

import asyncio
import os
import signal
import threading

import pytest

from overview.operators.stopping import Stopping


@pytest.fixture
def told():
    """What the web server's handler was told."""
    heard = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    yield heard
    signal.signal(signal.SIGTERM, before)


async def until(is_so):
    async with asyncio.timeout(5):
        while not is_so():
            await asyncio.sleep(0.01)


def terminate():
    os.kill(os.getpid(), signal.SIGTERM)


def test_a_stop_is_announced_first_and_done_later(told):
    async def scenario():
        stopping = Stopping()
        stopping.hold_back(0.2)
        assert not stopping.has_begun
        terminate()
        await until(lambda: stopping.has_begun)
        assert told == []
        await until(lambda: told)

    asyncio.run(scenario())
    assert told == [signal.SIGTERM]


def test_a_second_signal_stops_at_once(told):
    async def scenario():
        stopping = Stopping()
        stopping.hold_back(60)
        terminate()
        await until(lambda: stopping.has_begun)
        terminate()
        await until(lambda: told)

    asyncio.run(scenario())


def test_without_seconds_the_server_stops_as_ever(told):
    async def scenario():
        stopping = Stopping()
        stopping.hold_back(0)
        terminate()
        await until(lambda: told)
        return stopping.has_begun

    assert asyncio.run(scenario()) is False


def test_nothing_is_held_back_where_nobody_handles_the_signal(told):
    async def scenario():
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        Stopping().hold_back(60)

    asyncio.run(scenario())
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_nothing_is_held_back_outside_of_the_main_thread(told):
    async def scenario():
        Stopping().hold_back(60)

    thread = threading.Thread(target=lambda: asyncio.run(scenario()))
    thread.start()
    thread.join(5)
    terminate()
    assert told == [signal.SIGTERM]
