"""Whether the host can do its work, part by part: what `/readyz` answers.

Async, on the web server's loop. A part that does not answer in time has failed. What is wrong with
it goes to the log by its kind alone: the words of a driver may hold an address with a password.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from asgiref.sync import sync_to_async
from channels.layers import get_channel_layer
from django.core.cache import cache
from django.db import close_old_connections, connection

from overview.celery import app

logger = logging.getLogger(__name__)

T = TypeVar("T")

PART_SECONDS = 3
SHARED_SECONDS = 1
"""Anybody may ask; this often at most the parts are really looked at."""
WORKER_SILENT_SECONDS = 30
"""Beat sweeps each second: after this long without one, the clock or every worker has stopped."""

_HEARD_KEY = "operators.worker-heard-at"


def worker_heard() -> None:
    """A worker runs what the clock queued; every process may know."""
    cache.set(_HEARD_KEY, time.time(), WORKER_SILENT_SECONDS)


class Health:
    """The parts of the host, looked at once for all who ask at the same time."""

    def __init__(self) -> None:
        self._looking: asyncio.Task[dict[str, bool]] | None = None
        self._since = 0.0

    async def parts(self) -> dict[str, bool]:
        """Whether each part answers: database, broker, channel_layer, worker."""
        now = time.monotonic()
        loop = asyncio.get_running_loop()
        if (
            self._looking is None
            or self._looking.get_loop() is not loop
            or (self._looking.done() and now - self._since > SHARED_SECONDS)
        ):
            self._looking, self._since = loop.create_task(_look()), now
        # Whoever stops waiting does not stop it for the others.
        return await asyncio.shield(self._looking)


async def _look() -> dict[str, bool]:
    looks: dict[str, Callable[[], Awaitable[None]]] = {
        "database": in_thread(_database),
        "broker": in_thread(_broker),
        "channel_layer": _channel_layer,
        "worker": in_thread(_worker),
    }
    answers = await asyncio.gather(*(_answers(name, look) for name, look in looks.items()))
    return dict(zip(looks, answers, strict=True))


async def _answers(name: str, look: Callable[[], Awaitable[None]]) -> bool:
    try:
        async with asyncio.timeout(PART_SECONDS):
            await look()
    except Exception as error:
        kind = type(error).__name__
        logger.warning("Not ready", extra={"action": "not_ready", "part": name, "error": kind})
        return False
    return True


def _database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def _broker() -> None:
    # A connection of its own: one of the pool's would seem to stand when the broker is gone.
    with app.connection_for_write() as broker:
        broker.ensure_connection(max_retries=1, interval_start=0)
        _ = broker.default_channel


async def _channel_layer() -> None:
    layer = get_channel_layer()
    assert layer is not None
    await layer.group_send("readyz", {"type": "nobody.listens"})


def _worker() -> None:
    if cache.get(_HEARD_KEY) is None:
        raise TimeoutError


def in_thread(work: Callable[[], T]) -> Callable[[], Awaitable[T]]:
    """Make blocking work one to await, in a thread that gives its database connection back."""

    def bounded() -> T:
        close_old_connections()
        try:
            return work()
        finally:
            close_old_connections()

    return sync_to_async(bounded, thread_sensitive=False)
