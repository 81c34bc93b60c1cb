"""Threads that wait for slow servers do not use up the connections of their process."""

from __future__ import annotations

import asyncio
import threading

import pytest
from django.db import connection

from connectors.runtime import close_runtime, run
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_thread_that_waits_for_a_server_holds_no_connection_of_the_pool():
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has no pool")
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
