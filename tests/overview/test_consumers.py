"""The websocket of an open page: who gets one, what it says, when it ends."""

from __future__ import annotations

import asyncio

import pytest
from channels.layers import InMemoryChannelLayer, channel_layers
from django.conf import settings as django_settings
from django.db import close_old_connections, transaction

from overview import consumers
from overview.looks import Together, look
from tests.overview.sockets import Socket
from workspaces.actions import remove_member
from workspaces.push import deliver_on, panel_changed

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _own_layer(settings):
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
    channel_layers.backends.clear()
    yield
    deliver_on(None)
    channel_layers.backends.clear()


def session_of(client):
    return client.cookies[django_settings.SESSION_COOKIE_NAME].value


async def in_thread(function, *args, **kwargs):
    def bracketed():
        close_old_connections()
        try:
            return function(*args, **kwargs)
        finally:
            close_old_connections()

    return await asyncio.to_thread(bracketed)


def test_a_member_hears_that_the_panel_changed_and_nothing_else(acme, bob_client):
    async def scenario():
        deliver_on(asyncio.get_running_loop())
        socket = Socket(session_of(bob_client))
        assert await socket.open()
        assert await socket.said() == {"type": "tick", "version": 0}
        await in_thread(panel_changed, acme.pk)
        assert await socket.said() == {"type": "panel.changed", "version": 1}
        await socket.say("not json")
        await in_thread(panel_changed, acme.pk)
        assert await socket.said() == {"type": "panel.changed", "version": 2}
        await socket.close()

    asyncio.run(scenario())
    acme.refresh_from_db()
    assert acme.watched_until is not None


@pytest.mark.requirement("F-114")
def test_a_change_just_before_the_socket_joins_is_told_by_its_first_tick(
    acme, bob_client, monkeypatch
):
    joining = InMemoryChannelLayer.group_add

    async def late(layer, group, channel):
        await in_thread(panel_changed, acme.pk)
        await joining(layer, group, channel)

    monkeypatch.setattr(InMemoryChannelLayer, "group_add", late)

    async def scenario():
        deliver_on(asyncio.get_running_loop())
        socket = Socket(session_of(bob_client))
        await socket.open()
        said = await socket.said()
        await socket.close()
        return said

    assert asyncio.run(scenario()) == {"type": "tick", "version": 1}


@pytest.mark.requirement("F-149", "F-150")
def test_a_stranger_and_a_workspace_that_does_not_exist_close_alike(acme, carol_client):
    async def scenario(slug):
        socket = Socket(session_of(carol_client), slug)
        await socket.open()
        return await socket.said()

    assert asyncio.run(scenario("acme")) == asyncio.run(scenario("nowhere")) == 4403


def test_losing_access_ends_an_open_socket(acme, alice, bob, bob_client):
    async def scenario():
        deliver_on(asyncio.get_running_loop())
        socket = Socket(session_of(bob_client))
        await socket.open()
        await socket.said()
        await in_thread(remove_member, acme, bob, by=alice)
        return await socket.said()

    assert asyncio.run(scenario()) == 4403


def test_signing_out_ends_the_open_sockets_of_that_session(acme, bob_client):
    async def scenario():
        deliver_on(asyncio.get_running_loop())
        socket = Socket(session_of(bob_client))
        await socket.open()
        await socket.said()
        await in_thread(bob_client.post, "/sign-out/")
        return await socket.said()

    assert asyncio.run(scenario()) == 4401


@pytest.mark.requirement("F-114")
def test_a_change_is_told_after_its_commit_and_never_when_it_is_undone(acme, bob_client):
    def undone():
        with transaction.atomic():
            panel_changed(acme.pk)
            transaction.set_rollback(True)

    def done(socket, loop):
        with transaction.atomic():
            panel_changed(acme.pk)
            silence = asyncio.run_coroutine_threadsafe(socket.is_silent(), loop).result(5)
        return silence

    async def scenario():
        loop = asyncio.get_running_loop()
        deliver_on(loop)
        socket = Socket(session_of(bob_client))
        await socket.open()
        await socket.said()
        await in_thread(undone)
        assert await socket.is_silent()
        assert await in_thread(done, socket, loop)
        return await socket.said()

    assert asyncio.run(scenario()) == {"type": "panel.changed", "version": 1}


def test_a_session_that_ended_opens_no_socket(acme, bob_client):
    session_key = session_of(bob_client)
    bob_client.logout()

    async def scenario():
        socket = Socket(session_key)
        await socket.open()
        return await socket.said()

    assert asyncio.run(scenario()) == 4401


def test_another_origin_gets_no_socket(acme, bob_client):
    async def scenario():
        return await Socket(session_of(bob_client), origin="https://evil.example").open()

    assert asyncio.run(scenario()) is False


@pytest.fixture
def quick_ticks(monkeypatch):
    monkeypatch.setattr(consumers, "TICK_SECONDS", 0.2)
    monkeypatch.setattr(consumers, "TOGETHER_SECONDS", 0.1)


def test_a_tick_says_the_version_that_no_push_told(acme, bob_client, quick_ticks):
    async def scenario():
        socket = Socket(session_of(bob_client))
        await socket.open()
        assert await socket.said() == {"type": "tick", "version": 0}
        await in_thread(type(acme).objects.update, panel_version=7)
        while (said := await socket.said())["version"] == 0:
            pass
        await socket.close()
        return said

    assert asyncio.run(scenario()) == {"type": "tick", "version": 7}


def test_a_changed_password_ends_the_open_sockets(acme, bob, bob_client, quick_ticks):
    async def scenario():
        socket = Socket(session_of(bob_client))
        await socket.open()
        await socket.said()
        bob.set_password("another one")
        await in_thread(bob.save)
        while isinstance(said := await socket.said(), dict):
            pass
        return said

    assert asyncio.run(scenario()) == 4401


@pytest.mark.requirement("F-114")
def test_a_database_that_fails_for_a_moment_neither_closes_a_socket_nor_ends_its_ticks(
    acme, bob_client, quick_ticks, monkeypatch
):
    failing = []

    def sometimes(pages):
        if failing:
            raise failing.pop()
        return look(pages)

    monkeypatch.setattr(consumers, "looks", Together(sometimes))

    async def scenario():
        socket = Socket(session_of(bob_client))
        await socket.open()
        await socket.said()
        failing.append(ConnectionError("no database"))
        said = [await socket.said() for _ in range(3)]
        await socket.close()
        return said

    assert asyncio.run(scenario()) == [{"type": "tick", "version": 0}] * 3
    assert not failing


def test_a_page_that_nobody_could_look_after_may_try_again(acme, bob_client, monkeypatch):
    def fails(pages):
        raise ConnectionError("no database")

    monkeypatch.setattr(consumers, "looks", Together(fails))

    async def scenario():
        socket = Socket(session_of(bob_client))
        await socket.open()
        return await socket.said()

    assert asyncio.run(scenario()) == 1011
