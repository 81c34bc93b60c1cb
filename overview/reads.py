"""Read the facets of many connectors at once, on the background loop. Values in, values out."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass

from connectors.protocol.facets import Facet, InvalidRead, parse_listing, parse_read
from connectors.sessions import Fault, Listed, Sessions, Target
from workspaces import spans

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Asked:
    """What to do for one connector: list its resources, and read these facets that it has."""

    target: Target
    facets: tuple[Facet, ...]
    is_listing: bool = False
    is_first: bool = False
    """Whether it has not been listed since it became ready."""
    has_resources: bool = True
    """Whether the server has the resources capability; one without lists nothing (F-011)."""
    known: frozenset[str] = frozenset()
    """The names of its facets that are stored: after a listing only new ones are read at once."""


@dataclass(frozen=True, slots=True)
class ListingTaken:
    connector_id: int
    listed: Listed | Fault
    is_first: bool


@dataclass(frozen=True, slots=True)
class CountTaken:
    connector_id: int
    name: str
    outcome: int | InvalidRead | Fault
    seconds: float = 0
    """How long it took."""


Taken = ListingTaken | CountTaken


def word_for(outcome: object, good: str) -> str:
    """What came of a read, for those who count or trace: an enumeration of ours."""
    match outcome:
        case Fault():
            return outcome.kind.value
        case InvalidRead():
            return "invalid"
        case _:
            return good


class Reads:
    """Reads under way. `next` gives what has come in since, so that a fast answer is stored and
    shown while a slow one is still waited for (F-095, F-096)."""

    def __init__(self, sessions: Sessions, asked: Iterable[Asked], timeout_seconds: float) -> None:
        self._sessions = sessions
        self._timeout_seconds = timeout_seconds
        self._came: list[Taken] = []
        self._bell = asyncio.Event()
        self._tasks = [asyncio.create_task(self._read_connector(each)) for each in asked]
        self._all = asyncio.ensure_future(asyncio.gather(*self._tasks))
        self._all.add_done_callback(lambda _: self._bell.set())

    async def next(self, window_seconds: float) -> list[Taken]:
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

    async def _read_connector(self, asked: Asked) -> None:
        try:
            await self._read_all(asked)
        except Exception:
            # Of ours, for what servers do wrong is a value: it costs the others nothing.
            extra = {"action": "readings_failed", "connector": asked.target.connector_id}
            logger.exception("Readings of a connector failed", extra=extra)

    async def _read_all(self, asked: Asked) -> None:
        async with asyncio.TaskGroup() as group:
            for facet in asked.facets:
                group.create_task(self._read(asked.target, facet))
            if asked.is_listing:
                for facet in await self._list(asked):
                    if facet.name not in asked.known:
                        group.create_task(self._read(asked.target, facet))

    async def _list(self, asked: Asked) -> list[Facet]:
        listed: Listed | Fault = Listed(entries=[], pages=0, cut_short=None)
        if asked.has_resources:
            listed = await self._sessions.list_entries(
                asked.target, "resources/list", self._timeout_seconds
            )
        self._add(ListingTaken(asked.target.connector_id, listed, asked.is_first))
        return [] if isinstance(listed, Fault) else parse_listing(listed.entries)[0]

    async def _read(self, target: Target, facet: Facet) -> None:
        started = time.monotonic()
        with spans.span("facet read", attributes={"connector.id": target.connector_id}) as around:
            result = await self._sessions.read_resource(target, facet.uri, self._timeout_seconds)
            outcome = result if isinstance(result, Fault) else parse_read(result)
            word = word_for(outcome, "counted")
            spans.settle(around, word, is_error=word != "counted")
        seconds = time.monotonic() - started
        self._add(CountTaken(target.connector_id, facet.name, outcome, seconds))

    def _add(self, taken: Taken) -> None:
        self._came.append(taken)
        self._bell.set()
