"""When connections end: on purpose, for a newer credential, of idleness."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from connectors.sessions import FaultKind
from tests.connectors.session_host import host_of, sessionful, target_of
from tests.servers.raw import (
    forever,
    raw_server,
)

READ = {"contents": [{"uri": "test://one", "text": '{"count": 3}'}]}


def test_a_dropped_connector_ends_its_calls_and_is_not_opened_again_for_them():
    with raw_server() as server, host_of() as host:
        server.on("resources/read", lambda _: forever())
        target = target_of(server.url)
        host.connect(target)

        async def drop_during_a_read():
            read = host.sessions.read_resource
            call = asyncio.create_task(read(target, "test://one", 5))
            while not server.count("resources/read"):
                await asyncio.sleep(0.005)
            await host.sessions.drop(target.connector_id)
            return await call

        assert host.run(drop_during_a_read()).kind == FaultKind.CLOSED
        assert server.count("resources/read") == 1
        server.on("resources/read", READ)
        assert host.read(target)["contents"] == READ["contents"]


def test_a_connector_can_be_dropped_while_it_connects():
    with raw_server() as server, host_of() as host:
        server.intercept = lambda _: forever()
        target = target_of(server.url)

        async def drop_early():
            call = asyncio.create_task(host.sessions.connect(target, 5))
            while not server.requests:
                await asyncio.sleep(0.005)
            await host.sessions.drop(target.connector_id)
            return await call

        assert host.run(drop_early()).kind == FaultKind.CLOSED


def test_a_new_credential_has_a_connection_of_its_own_and_ends_the_older_one():
    with sessionful() as server, host_of() as host:
        server.on("resources/read", READ)
        old = target_of(server.url, headers=(("Authorization", "Bearer old-token"),))
        new = replace(old, generation=2, headers=(("Authorization", "Bearer new-token"),))
        host.read(old)
        host.read(new)
        assert [r.headers["authorization"] for r in server.seen("resources/read")] == [
            "Bearer old-token",
            "Bearer new-token",
        ]
        host.run(_until(lambda: server.count("DELETE")))
        ended = server.seen("DELETE")[0]
        assert ended.headers["authorization"] == "Bearer old-token"


def test_an_idle_connection_is_closed_and_opened_again_when_needed():
    with sessionful() as server, host_of(idle_seconds=0.1) as host:
        server.on("resources/read", READ)
        target = target_of(server.url)
        host.read(target)
        host.run(_until(lambda: server.count("DELETE")))
        assert host.read(target) == READ
        assert server.count("initialize") == 2


def test_a_closed_pool_answers_with_a_fault():
    with raw_server() as server, host_of() as host:
        target = target_of(server.url)
        host.connect(target)
        host.run(host.sessions.close())
        assert host.connect(target).kind == FaultKind.CLOSED


async def _until(condition, seconds=3):
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.005)
