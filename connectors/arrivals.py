"""Asking many servers at once, on the background loop, and taking what comes as it comes.

Values in, values out: what is asked and what is done with the answers is the caller's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Generator, Iterable
from typing import Any, Generic, Protocol, TypeVar

from django.db import InterfaceError, OperationalError

from connectors.runtime import run
from connectors.sessions import Sessions

logger = logging.getLogger(__name__)

T = TypeVar("T")


class OfConnector(Protocol):
    """Something that one connector's server brought."""

    @property
    def connector_id(self) -> int: ...


A = TypeVar("A", bound=OfConnector)

WINDOW_SECONDS = 0.1
"""Answers that come this close together are stored in one transaction and shown in one push."""


class Arrivals(Generic[T]):
    """Work under way for some connectors. `next` gives what has come in since, so that a fast
    answer is stored and shown while a slow one is still waited for (F-095, F-096)."""

    def __init__(self, works: Iterable[tuple[int, Coroutine[Any, Any, None]]]) -> None:
        """works: connector id and what to do for it, which tells `add` what it brings."""
        self._came: list[T] = []
        self._bell = asyncio.Event()
        tasks = [asyncio.create_task(_alone(*each)) for each in works]
        self._all = asyncio.ensure_future(asyncio.gather(*tasks))
        self._all.add_done_callback(lambda _: self._bell.set())

    def add(self, brought: T) -> None:
        self._came.append(brought)
        self._bell.set()

    async def next(self, window_seconds: float) -> list[T]:
        """Wait for an answer, then a moment for its neighbours; an empty list when all is done."""
        while not self._came and not self._all.done():
            self._bell.clear()
            await self._bell.wait()
        if not self._all.done():
            await asyncio.wait([self._all], timeout=window_seconds)
        came, self._came = self._came, []
        return came

    def cancel(self) -> None:
        self._all.cancel()


async def _alone(connector_id: int, work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except Exception:
        # Of ours, for what servers do wrong is a value: it costs the others nothing.
        extra = {"action": "asking_failed", "connector": connector_id}
        logger.exception("Asking a server failed", extra=extra)


def windows_of(
    start: Callable[[Sessions], Arrivals[T]], timeout_seconds: float
) -> Generator[list[T], None, None]:
    """Begin the work, from a thread, and give what it brings until all is done.

    Closing the generator ends what is still under way.
    Raises: TimeoutError when nothing comes for longer.
    """
    arrivals = run(lambda sessions: _started(start, sessions), 5)
    try:
        while came := run(lambda _: arrivals.next(WINDOW_SECONDS), timeout_seconds):
            yield came
    finally:
        run(lambda _: _cancelled(arrivals), 5)


def stored_apart(store: Callable[[list[A]], None], came: list[A]) -> list[A]:
    """Store what came together, and give what was stored. After an error of ours each by itself, so
    that it costs the connector alone that it is about: its lease is the pause before the next try.
    """
    try:
        store(came)
    except (OperationalError, InterfaceError):
        raise  # The database is away, for all of them.
    except Exception:
        if len(came) > 1:
            return [each for one in came for each in stored_apart(store, [one])]
        extra = {"action": "answer_not_stored", "connector": came[0].connector_id}
        logger.exception("What a server answered could not be stored", extra=extra)
        return []
    return came


async def _started(start: Callable[[Sessions], Arrivals[T]], sessions: Sessions) -> Arrivals[T]:
    return start(sessions)


async def _cancelled(arrivals: Arrivals[Any]) -> None:
    arrivals.cancel()
