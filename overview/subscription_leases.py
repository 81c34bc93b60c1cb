"""Who listens to which server: rows, leases, and what a change marks. Shell, synchronous.

A lease is taken by one conditional UPDATE and expires by itself, so that one process listens for
everybody and a killed one is replaced.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from connectors.models import Connector
from connectors.protocol.identifiers import MODERN_REVISION
from connectors.queries import targets_of
from connectors.sessions import Target
from overview.counts import readable
from overview.models import StoredFacet, Subscription

LEASE_SECONDS = 30
UNOFFERED_SECONDS = 600
"""For how long a server that offers no subscriptions, or refused one, is not asked again."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A server to listen to, and for which facets."""

    target: Target
    uris: frozenset[str]


def claim(owner: str, room: int, now: datetime) -> list[Wanted]:
    """Take the leases of servers that nobody listens to, as many as there is room for."""
    claimed = []
    for pk, generation, capabilities in _candidates(now)[: room if room > 0 else 0]:
        seconds = LEASE_SECONDS if _offers(capabilities) else UNOFFERED_SECONDS
        holder = owner if _offers(capabilities) else ""
        if _take(pk, generation, holder, now, seconds) and holder:
            claimed.append(pk)
    targets = targets_of(Connector.objects.filter(pk__in=claimed), now)
    uris = _uris_of(claimed)
    return [Wanted(target, uris.get(pk, frozenset())) for pk, target in targets.items()]


def _candidates(now: datetime) -> QuerySet[Connector, tuple[int, int, object]]:
    """Ready connectors with facets, of the new era, that somebody looks at and nobody holds."""
    held = Subscription.objects.filter(
        connector=OuterRef("pk"), generation=OuterRef("generation"), until__gt=now
    )
    facets = StoredFacet.objects.filter(connector=OuterRef("pk"))
    watched = readable(Q(workspace__watched_until__gt=now))
    found = watched.filter(~Exists(held), Exists(facets), revision=MODERN_REVISION)
    return found.order_by("pk").values_list("pk", "generation", "capabilities")


def _offers(capabilities: object) -> bool:
    resources = capabilities.get("resources") if isinstance(capabilities, dict) else None
    return isinstance(resources, dict) and resources.get("subscribe") is True


def _take(pk: int, generation: int, owner: str, now: datetime, seconds: float) -> bool:
    values = {
        "generation": generation,
        "owner": owner,
        "until": now + timedelta(seconds=seconds),
    }
    free = Q(until__lte=now) | ~Q(generation=generation)
    if Subscription.objects.filter(free, connector_id=pk).update(**values):
        return True
    new = Subscription(connector_id=pk, **values)
    # Two who find no row: the second one adds nothing, and holds nothing.
    Subscription.objects.bulk_create([new], ignore_conflicts=True)
    return Subscription.objects.filter(connector_id=pk, **values).exists()


def renew(owner: str, now: datetime) -> dict[int, frozenset[str]]:
    """Hold on to what is still wanted; the facets to listen for, by connector.

    No longer wanted: a workspace that nobody looks at, a connector that has changed or left ready.
    """
    ready = readable(Q(workspace__watched_until__gt=now)).values("pk")
    mine = Subscription.objects.filter(
        owner=owner, connector__in=ready, generation=F("connector__generation")
    )
    ids = list(mine.values_list("connector_id", flat=True))
    held = Subscription.objects.filter(owner=owner, connector_id__in=ids)
    held.update(until=now + timedelta(seconds=LEASE_SECONDS))
    return _uris_of(ids)


def give_up(owner: str, target: Target, now: datetime, pause_seconds: float) -> None:
    """Let go of the lease of this generation; nobody listens to it before the pause is over."""
    connector_id, generation = target.key
    mine = Subscription.objects.filter(
        owner=owner, connector_id=connector_id, generation=generation
    )
    mine.update(owner="", until=now + timedelta(seconds=pause_seconds))


def mark_changed(connector_id: int, uris: Iterable[str], now: datetime) -> bool:
    """Make the counts behind these URIs due; what is shown stays. False when none is there."""
    wanted = set(uris)
    # A URI is stored as it came and cannot be searched for.
    rows = StoredFacet.objects.filter(connector_id=connector_id)
    pks = [pk for pk, uri in rows.values_list("pk", "uri") if uri in wanted]
    return bool(StoredFacet.objects.filter(pk__in=pks).update(changed_at=now))


def _uris_of(connector_ids: list[int]) -> dict[int, frozenset[str]]:
    found: dict[int, set[str]] = {}
    rows = StoredFacet.objects.filter(connector_id__in=connector_ids)
    for pk, uri in rows.values_list("connector_id", "uri"):
        found.setdefault(pk, set()).add(uri)
    return {pk: frozenset(uris) for pk, uris in found.items()}
