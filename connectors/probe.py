"""Looking at one server: does it answer, and what does it list? The shell around two tasks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from datetime import datetime

from django.conf import settings

from connectors import listings
from connectors.arrivals import Arrivals
from connectors.contact import Contact
from connectors.models import Connector, Listing, ListingKind
from connectors.protocol.uri_templates import BadTemplate, parse
from connectors.queries import is_ready, targets_of
from connectors.runtime import run
from connectors.sessions import Connected, Fault, FaultKind, Listed, Sessions, Target

QUICK_RETRY_SECONDS = 0.5
"""One quick second try tells a blip from an outage; the status changes only after it."""

_PASSING = frozenset(
    {FaultKind.UNREACHABLE, FaultKind.TIMEOUT, FaultKind.CLOSED, FaultKind.HTTP, FaultKind.PROTOCOL}
    | {FaultKind.PROXY}
)
_METHODS = {
    ListingKind.TEMPLATES: "resources/templates/list",
    ListingKind.TOOLS: "tools/list",
    ListingKind.RESOURCES: "resources/list",
}


async def probe(sessions: Sessions, target: Target, timeout_seconds: float) -> Connected | Fault:
    """Ask a server whether it is there, connecting first where needed; twice when it fails."""
    outcome = await sessions.ping(target, timeout_seconds)
    if isinstance(outcome, Fault) and outcome.kind in _PASSING:
        await asyncio.sleep(QUICK_RETRY_SECONDS)
        outcome = await sessions.ping(target, timeout_seconds)
    return outcome


class Probes(Arrivals[Contact]):
    """Probes of many servers under way."""

    def __init__(
        self, sessions: Sessions, targets: Iterable[Target], timeout_seconds: float
    ) -> None:
        super().__init__(
            (target.connector_id, self._probe(sessions, target, timeout_seconds))
            for target in targets
        )

    async def _probe(self, sessions: Sessions, target: Target, timeout_seconds: float) -> None:
        started = time.monotonic()
        outcome = await probe(sessions, target, timeout_seconds)
        latency_ms = round((time.monotonic() - started) * 1000)
        self.add(Contact(target.connector_id, target.generation, outcome, latency_ms))


def take_listings(connector_id: int, owner: str, now: datetime) -> None:
    """Take and store the listings of templates and tools that are due, if the connector is ready.

    With them the listing of resources, where outside clients are its only readers. A server
    without the capability lists nothing, and is not asked.
    """
    connector = Connector.objects.filter(is_ready(), pk=connector_id).first()
    target = targets_of(Connector.objects.filter(pk=connector_id), now).get(connector_id)
    if connector is None or target is None:
        return
    has_clients = Listing.objects.filter(
        listings.for_endpoint(now), connector_id=connector_id
    ).exists()
    for kind in _METHODS:
        if kind == ListingKind.RESOURCES and not has_clients:
            continue
        claimed = listings.claim(
            [connector_id],
            kind,
            owner=owner,
            now=now,
            interval_seconds=settings.TEMPLATE_LISTING_SECONDS,
            retry_seconds=settings.FACET_LISTING_RETRY_SECONDS,
        )
        if claimed:
            listed = _list(connector, target, kind)
            listings.store(
                connector_id,
                kind,
                listed,
                owner=owner,
                now=now,
                epoch=connector.epoch,
                skipped=_unusable(kind, listed),
            )


def _list(connector: Connector, target: Target, kind: ListingKind) -> Listed | Fault:
    capability = "tools" if kind == ListingKind.TOOLS else "resources"
    if not isinstance((connector.capabilities or {}).get(capability), dict):
        return Listed(entries=[], pages=0, cut_short=None)
    seconds = settings.CONNECT_SECONDS
    return run(lambda sessions: sessions.list_entries(target, _METHODS[kind], seconds), seconds + 5)


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
