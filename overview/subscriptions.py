"""Listening to servers that tell when a count changes. Async, on the background loop.

What a server tells only makes its counts due at once: the contract holds without it, and what is
missed is read with the next ordinary round. That the listing changed is ignored, because it is read
"at most every five minutes", whatever a server says (F-058).
Source: MCP 2026-07-28, "Subscriptions"; Facets, "What the host does".
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar
from uuid import uuid4

from channels.db import database_sync_to_async
from django.db import transaction
from django.utils import timezone

from connectors.runtime import run, sessions
from connectors.sessions import Fault, FaultKind
from overview.subscription_leases import (
    UNOFFERED_SECONDS,
    Wanted,
    claim,
    give_up,
    mark_changed,
    renew,
)

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

MAX_HELD = 200
"""Servers that one process listens to; each costs it a socket."""

RENEW_SECONDS = 10
"""A third of a lease."""

PAUSE_SECONDS = 15
"""After a subscription that ended, before the next one."""

GAP_SECONDS = 2
"""Between two rounds of reading that one server can cause, however much it tells."""

_REFUSED = frozenset({FaultKind.REMOTE, FaultKind.PROTOCOL, FaultKind.FORBIDDEN})


@dataclass(slots=True)
class Held:
    """A subscription. is_open: the server has agreed to tell."""

    wanted: Wanted
    is_open: bool = False
    changed: set[str] = field(default_factory=set)
    bell: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    @property
    def connector_id(self) -> int:
        return self.wanted.target.connector_id

    def on_open(self) -> None:
        self.is_open = True

    def on_change(self, uri: str | None) -> None:
        if uri in self.wanted.uris:
            self.changed.add(uri)
            self.bell.set()


class Listener:
    """The subscriptions of one process. Everything but `owner` belongs to the loop."""

    def __init__(self) -> None:
        self.owner = uuid4().hex
        self.held: dict[int, Held] = {}
        self._renewing: asyncio.Task[None] | None = None

    async def hold(self, wanted: list[Wanted]) -> None:
        """Begin to listen; it goes on until nobody wants it, or the server ends it."""
        for each in wanted:
            held = Held(each)
            former = self.held.get(held.connector_id)
            if former is not None and former.task is not None:
                # Of an earlier generation: it would keep that one's connection in use.
                former.task.cancel()
            self.held[held.connector_id] = held
            held.task = asyncio.create_task(self._listen(held))
        if self.held and (self._renewing is None or self._renewing.done()):
            self._renewing = asyncio.create_task(self._renew())

    async def _listen(self, held: Held) -> None:
        telling = asyncio.create_task(_tell(held))
        pause = 0.0
        try:
            target, uris = held.wanted.target, sorted(held.wanted.uris)
            end = await sessions().listen(target, uris, held.on_change, held.on_open)
            is_refused = isinstance(end, Fault) and end.kind in _REFUSED
            pause = UNOFFERED_SECONDS if is_refused else PAUSE_SECONDS
            extra = {"action": "subscription_ended", "connector": held.connector_id}
            logger.info("A subscription ended: %s", end.message if end else "closed", extra=extra)
        finally:
            telling.cancel()
            if self.held.get(held.connector_id) is held:
                del self.held[held.connector_id]
            leave = (self.owner, held.wanted.target, timezone.now(), pause)
            await asyncio.shield(_in_thread(give_up)(*leave))

    async def _renew(self) -> None:
        while self.held:
            await asyncio.sleep(RENEW_SECONDS)
            await self.renew()

    async def renew(self) -> None:
        """Renew the leases, and leave the servers that nobody wants to hear any more."""
        try:
            wanted = await _in_thread(renew)(self.owner, timezone.now())
        except Exception:
            # Without the store the leases run out, and then another process may listen too.
            logger.exception("Subscriptions could not be renewed")
            return
        for held in list(self.held.values()):
            if wanted.get(held.connector_id) != held.wanted.uris and held.task is not None:
                held.task.cancel()


async def _tell(held: Held) -> None:
    """Make what changed due: the first change at once, further ones in rounds."""
    while True:
        await held.bell.wait()
        held.bell.clear()
        uris, held.changed = held.changed, set()
        try:
            await _in_thread(_queue)(held.connector_id, uris)
        except Exception:
            logger.exception("A change could not be noted")
        await asyncio.sleep(GAP_SECONDS)


def _queue(connector_id: int, uris: set[str]) -> None:
    from overview.tasks import queue_reads

    if mark_changed(connector_id, uris, timezone.now()):
        # Without a broker the next sweep finds them due.
        transaction.on_commit(lambda: queue_reads([connector_id]), robust=True)


def _in_thread(work: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    return database_sync_to_async(work, thread_sensitive=False)


_lock = threading.Lock()
_listener: Listener | None = None


def listener() -> Listener:
    """The one of this process, made when first used."""
    global _listener
    with _lock:
        if _listener is None:
            _listener = Listener()
        return _listener


def listen_to_more() -> None:
    """Listen to the servers that nobody listens to, if this process has room."""
    mine = listener()
    wanted = claim(mine.owner, MAX_HELD - len(mine.held), timezone.now())
    if wanted:
        run(lambda _: mine.hold(wanted), 5)
