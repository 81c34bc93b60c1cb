"""Threads that wait for slow servers do not use up the connections of their process."""

from __future__ import annotations

import asyncio
import threading
from uuid import uuid4

import pytest
from django.db import connection

from connectors.runtime import close_runtime, run
from tests.connectors.outside import install, text, tool
from tests.connectors.records import REFUSED, added, asked, contacted
from tests.servers.raw import raw_server
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _pool():
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has no pool")


def test_a_thread_that_waits_for_a_server_holds_no_connection_of_the_pool():
    assert not Workspace.objects.exists()
    pool = connection.pool  # type: ignore[attr-defined]
    waiting, ended = threading.Event(), threading.Event()

    def task():
        list(Workspace.objects.all())
        run(lambda _: wait(), 10)
        list(Workspace.objects.all())
        connection.close()

    async def wait():
        waiting.set()
        await asyncio.to_thread(ended.wait, 5)

    threads = [threading.Thread(target=task) for _ in range(pool.max_size + 4)]
    for thread in threads:
        thread.start()
    try:
        assert waiting.wait(5)
        connection.close()
        # All of them wait, more than the pool has, and one more is served at once.
        assert not Workspace.objects.exists()
    finally:
        ended.set()
        for thread in threads:
            thread.join(10)
        close_runtime()
    assert not any(thread.is_alive() for thread in threads)


def in_use():
    """How many connections are out of the pool; threads of earlier tests may hold some."""
    stats = connection.pool.get_stats()  # type: ignore[attr-defined]
    return stats["pool_size"] - stats["pool_available"]


@pytest.fixture
def server(acme):
    """A server that answers when its host holds no connection, or after five seconds."""
    connection.close()
    others = in_use()
    held = []

    async def wait(_):
        for _ in range(250):
            held.append(in_use() - others)
            if held[-1] <= 0:
                return
            await asyncio.sleep(0.02)

    with raw_server(capabilities={"tools": {}}) as running:
        running.intercept = wait
        yield running
        assert held and held[-1] <= 0
    close_runtime()


def test_neither_does_a_page_that_waits_for_a_tool(acme, alice_client, server):
    server.on("tools/call", text("done"))
    reads = {"annotations": {"readOnlyHint": True}}
    install(acme, "crm", server.url, listings={"tools": [tool("look", **reads)]})
    path = "/w/acme/tools/call/?name=crm__look"
    assert "done" in alice_client.post(path, {"once": uuid4()}).content.decode()


def test_neither_does_a_page_that_asks_where_to_sign_in(acme, alice_client, server):
    contacted(asked(added(acme, url=server.url)), REFUSED)
    assert alice_client.post("/w/acme/connectors/mail/sign-in/").status_code in (302, 502)
