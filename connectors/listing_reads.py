"""Taking the listings of templates and tools, and of resources where agents alone read them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.conf import settings

from connectors import listings
from connectors.arrivals import Arrivals, stored_apart, windows_of
from connectors.models import Connector, Listing, ListingKind
from connectors.protocol.uri_templates import BadTemplate, parse
from connectors.queries import is_ready, readable_targets
from connectors.sessions import Fault, Listed, Sessions, Target

_METHODS: Final = {
    ListingKind.TEMPLATES: "resources/templates/list",
    ListingKind.TOOLS: "tools/list",
    ListingKind.RESOURCES: "resources/list",
}


AT_ONCE: Final = 8
"""Listings of one task under way: each may bring as much as the limits allow, and is decoded on the
loop that all others read on."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What to list of one server. capabilities: what it said of itself."""

    target: Target
    capabilities: dict[str, Any]
    kinds: frozenset[ListingKind]


@dataclass(frozen=True, slots=True)
class Taken:
    connector_id: int
    kind: ListingKind
    listed: Listed | Fault


class ListingReads(Arrivals[Taken]):
    """Listings under way."""

    def __init__(self, sessions: Sessions, asked: Iterable[Asked], timeout_seconds: float) -> None:
        self._sessions = sessions
        self._timeout_seconds = timeout_seconds
        self._turns = asyncio.Semaphore(AT_ONCE)
        super().__init__((each.target.connector_id, self._take_all(each)) for each in asked)

    async def _take_all(self, asked: Asked) -> None:
        await asyncio.gather(*(self._take(asked, kind) for kind in sorted(asked.kinds)))

    async def _take(self, asked: Asked, kind: ListingKind) -> None:
        """A server without the capability lists nothing, and is not asked."""
        listed: Listed | Fault = Listed(entries=[], pages=0, cut_short=None)
        capability = "tools" if kind == ListingKind.TOOLS else "resources"
        if isinstance(asked.capabilities.get(capability), dict):
            async with self._turns:
                listed = await self._sessions.list_entries(
                    asked.target, _METHODS[kind], self._timeout_seconds
                )
        self.add(Taken(asked.target.connector_id, kind, listed))


def take_listings(connector_ids: Iterable[int], owner: str, now: datetime) -> list[int]:
    """Take and store what is due of these connectors' listings; the connectors that were asked.

    Only ready ones are.
    """
    ready = Connector.objects.filter(is_ready(), pk__in=list(connector_ids))
    kinds = _claim(list(ready.values_list("pk", flat=True)), owner, now)
    claimed = ready.filter(pk__in=kinds)
    targets, _ = readable_targets(claimed, now)
    said = {each.pk: each for each in claimed.only("epoch", "capabilities")}
    asked = [
        Asked(target, said[pk].capabilities or {}, frozenset(kinds[pk]))
        for pk, target in targets.items()
        if pk in said
    ]
    # The others have just left ready, or their next check says what is wrong.
    listings.release(kinds.keys() - {each.target.connector_id for each in asked}, owner)
    if not asked:
        return []
    epochs = {pk: connector.epoch for pk, connector in said.items()}
    seconds = settings.CONNECT_SECONDS
    reading = windows_of(lambda sessions: ListingReads(sessions, asked, seconds), seconds + 5)

    def store(taken: list[Taken]) -> None:
        came = {(each.connector_id, each.kind): _came(each, epochs) for each in taken}
        listings.store(came, owner=owner, now=now)

    with closing(reading) as windows:
        for taken in windows:
            stored_apart(store, taken)
    return [each.target.connector_id for each in asked]


def _claim(connector_ids: list[int], owner: str, now: datetime) -> dict[int, list[ListingKind]]:
    """Take the leases; the kinds of listings that are ours to take, by connector."""
    for_clients = Listing.objects.filter(
        listings.for_endpoint(now), connector_id__in=connector_ids
    ).values_list("connector_id", flat=True)
    ours: dict[int, list[ListingKind]] = {}
    for kind in _METHODS:
        ids = list(for_clients) if kind == ListingKind.RESOURCES else connector_ids
        for pk in listings.claim(
            ids,
            kind,
            owner=owner,
            now=now,
            interval_seconds=settings.TEMPLATE_LISTING_SECONDS,
            retry_seconds=settings.FACET_LISTING_RETRY_SECONDS,
        ):
            ours.setdefault(pk, []).append(kind)
    return ours


def _came(taken: Taken, epochs: dict[int, int]) -> listings.Came:
    epoch = epochs[taken.connector_id]
    return listings.Came(taken.listed, epoch, _unusable(taken.kind, taken.listed))


def _unusable(kind: ListingKind, listed: Listed | Fault) -> list[dict[str, str | None]]:
    """The entries that claim nothing, with the reason (R-079, R-081)."""
    if isinstance(listed, Fault) or kind != ListingKind.TEMPLATES:
        return []
    skipped: list[dict[str, str | None]] = []
    for entry in listed.entries:
        text = entry.get("uriTemplate") if isinstance(entry, dict) else None
        if not isinstance(text, str):
            skipped.append({"uri": None, "name": None, "reason": "uriTemplate is not text"})
            continue
        try:
            parse(text)
        except BadTemplate as bad:
            skipped.append({"uri": text[:200], "name": None, "reason": str(bad)})
    return skipped
