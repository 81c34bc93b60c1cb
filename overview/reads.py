"""Read the facets of many connectors at once, on the background loop. Values in, values out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass

from connectors.arrivals import Arrivals
from connectors.protocol.facets import Facet, InvalidRead, parse_listing, parse_read
from connectors.sessions import Fault, Listed, Sessions, Target
from workspaces import spans


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


class Reads(Arrivals[Taken]):
    """Reads under way."""

    def __init__(self, sessions: Sessions, asked: Iterable[Asked], timeout_seconds: float) -> None:
        self._sessions = sessions
        self._timeout_seconds = timeout_seconds
        super().__init__((each.target.connector_id, self._read_all(each)) for each in asked)

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
        self.add(ListingTaken(asked.target.connector_id, listed, asked.is_first))
        return [] if isinstance(listed, Fault) else parse_listing(listed.entries)[0]

    async def _read(self, target: Target, facet: Facet) -> None:
        started = time.monotonic()
        with spans.span("facet read", attributes={"connector.id": target.connector_id}) as around:
            result = await self._sessions.read_resource(target, facet.uri, self._timeout_seconds)
            outcome = result if isinstance(result, Fault) else parse_read(result)
            word = word_for(outcome, "counted")
            spans.settle(around, word, is_error=word != "counted")
        seconds = time.monotonic() - started
        self.add(CountTaken(target.connector_id, facet.name, outcome, seconds))
