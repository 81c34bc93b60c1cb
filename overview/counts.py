"""The counts of facets: who reads them when, and what is kept. Shell around protocol.freshness.

A read is claimed by one conditional UPDATE whose lease expires by itself, so that everybody in
every process shares one read and a killed process blocks nobody. What a late answer brings is kept
only while its lease still stands and its connector is the one that was asked.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet

from connectors import listings
from connectors.models import Connector, Listing, ListingKind
from connectors.protocol.facets import Facet, InvalidRead, Level, Skipped, parse_listing
from connectors.protocol.freshness import Policy
from connectors.queries import is_ready
from connectors.sessions import Fault, Listed
from overview.models import StoredFacet, digest_of
from overview.panel import FacetReading, reading_of
from overview.reads import CountTaken, ListingTaken
from workspaces.push import panel_changed

LEASE_MARGIN_SECONDS = 10
"""A cold read connects, lists and reads; its lease outlasts all three."""


def policy() -> Policy:
    """The times of the specification, or the operator's own."""
    return Policy(
        fresh_seconds=settings.FACET_FRESH_SECONDS,
        max_age_seconds=settings.FACET_MAX_AGE_SECONDS,
        listing_seconds=settings.FACET_LISTING_SECONDS,
        listing_retry_seconds=settings.FACET_LISTING_RETRY_SECONDS,
    )


def readable(workspaces: Q) -> QuerySet[Connector]:
    """The ready connectors of some workspaces whose servers advertised facets (F-007, F-013)."""
    return Connector.objects.filter(
        is_ready(), workspaces, workspace__isnull=False, advertises_facets=True
    )


def counts_due(now: datetime) -> Q:
    """Stored facets to read again: not fresh, or of an earlier connection, and not just failed."""
    times = policy()
    is_old = (
        Q(read_at__isnull=True)
        | Q(read_at__lte=now - timedelta(seconds=times.fresh_seconds))
        | ~Q(epoch=F("connector__epoch"))
    )
    has_paused = Q(failed_at__isnull=True) | Q(
        failed_at__lte=now - timedelta(seconds=times.retry_seconds)
    )
    return is_old & has_paused & (Q(lease_until__isnull=True) | Q(lease_until__lt=now))


def listings_due(now: datetime) -> Q:
    """Listings of resources to take again."""
    times = policy()
    return listings.due(now, times.listing_seconds, times.listing_retry_seconds)


def due_connectors(workspaces: Q, now: datetime) -> list[int]:
    """The connectors with something to read, in two statements."""
    ready = readable(workspaces).values("pk")
    counted = StoredFacet.objects.filter(counts_due(now), connector__in=ready)
    listed = Listing.objects.filter(
        listings_due(now), connector__in=ready, kind=ListingKind.RESOURCES
    )
    ids = {*counted.values_list("connector_id", flat=True)}
    return sorted(ids | {*listed.values_list("connector_id", flat=True)})


def claim_listings(connector_ids: list[int], *, owner: str, now: datetime) -> list[int]:
    """Take the leases of the due listings of facets; the connectors whose lease is ours."""
    times = policy()
    return listings.claim(
        connector_ids,
        ListingKind.RESOURCES,
        owner=owner,
        now=now,
        interval_seconds=times.listing_seconds,
        retry_seconds=times.listing_retry_seconds,
    )


def claim_counts(connector_ids: list[int], *, owner: str, now: datetime) -> dict[int, list[Facet]]:
    """Take the leases of the due counts; the facets that are ours to read, by connector."""
    seconds = settings.FACET_READ_TIMEOUT_SECONDS * 2 + LEASE_MARGIN_SECONDS
    stored = StoredFacet.objects.filter(connector_id__in=connector_ids)
    claimed = stored.filter(counts_due(now)).update(
        lease_owner=owner, lease_until=now + timedelta(seconds=seconds)
    )
    mine: dict[int, list[Facet]] = {}
    if claimed:
        for row in stored.filter(lease_owner=owner).order_by("position"):
            facet = Facet(row.name, row.uri, row.title, Level(row.level))
            mine.setdefault(row.connector_id, []).append(facet)
    return mine


@transaction.atomic
def keep(
    taken: Iterable[ListingTaken | CountTaken],
    asked: dict[int, tuple[int, int]],
    *,
    owner: str,
    now: datetime,
) -> None:
    """Store what a group of reads brought, and push once to each workspace whose panel differs.

    asked: connector id -> the (generation, epoch) that was asked. Results of a connector that has
    left ready, changed or gone since are dropped (F-145, F-147).
    """
    taken = list(taken)
    current = {
        pk: workspace_id
        for pk, workspace_id, generation, epoch in Connector.objects.filter(
            is_ready(), pk__in={each.connector_id for each in taken}
        ).values_list("pk", "workspace_id", "generation", "epoch")
        if asked.get(pk) == (generation, epoch)
    }
    changed: set[int] = set()
    counts: list[CountTaken] = []
    for each in taken:
        workspace_id = current.get(each.connector_id)
        if workspace_id is None:
            continue
        epoch = asked[each.connector_id][1]
        if isinstance(each, CountTaken):
            counts.append(each)
        elif _keep_listing(each, owner=owner, now=now, epoch=epoch):
            changed.add(workspace_id)
    changed |= {
        workspace_id
        for pk in _keep_counts(counts, asked, owner=owner, now=now)
        if (workspace_id := current[pk]) is not None
    }
    for workspace_id in sorted(changed):
        panel_changed(workspace_id)


def _keep_listing(taken: ListingTaken, *, owner: str, now: datetime, epoch: int) -> bool:
    """Store a listing and its facets; True when the panel may differ."""
    facets, skipped = _facets_in(taken.listed)
    is_ours = listings.store(
        taken.connector_id,
        ListingKind.RESOURCES,
        taken.listed,
        owner=owner,
        now=now,
        epoch=epoch,
        skipped=[{"name": each.name, "uri": each.uri, "reason": each.reason} for each in skipped],
    )
    if not is_ours or isinstance(taken.listed, Fault):
        return False
    stored = {
        row.name_digest: row for row in StoredFacet.objects.filter(connector_id=taken.connector_id)
    }
    new, moved = [], []
    for position, facet in enumerate(facets):
        row = stored.pop(digest_of(facet.name), None)
        described = (facet.uri, facet.title, facet.level.value, position)
        if row is None:
            new.append(_new_row(taken.connector_id, facet, position, owner, now))
        elif (row.uri, row.title, row.level, row.position) != described:
            row.uri, row.title, row.level, row.position = described
            moved.append(row)
    StoredFacet.objects.bulk_create(new)
    StoredFacet.objects.bulk_update(moved, ["uri", "title", "level", "position"])
    StoredFacet.objects.filter(pk__in=[row.pk for row in stored.values()]).delete()
    return bool(new or moved or stored) or taken.is_first


def _new_row(
    connector_id: int, facet: Facet, position: int, owner: str, now: datetime
) -> StoredFacet:
    # Its first read is already under way with the listing that found it.
    return StoredFacet(
        connector_id=connector_id,
        name=facet.name,
        name_digest=digest_of(facet.name),
        uri=facet.uri,
        title=facet.title,
        level=facet.level.value,
        position=position,
        lease_owner=owner,
        lease_until=now + timedelta(seconds=settings.FACET_READ_TIMEOUT_SECONDS + 3),
    )


def _facets_in(listed: Listed | Fault) -> tuple[list[Facet], list[Skipped]]:
    return ([], []) if isinstance(listed, Fault) else parse_listing(listed.entries)


def _keep_counts(
    counts: list[CountTaken], asked: dict[int, tuple[int, int]], *, owner: str, now: datetime
) -> set[int]:
    """Store counts and failures under our leases; the connectors of which a row shows otherwise."""
    outcomes = {(each.connector_id, digest_of(each.name)): each.outcome for each in counts}
    ours = StoredFacet.objects.filter(lease_owner=owner)
    rows = ours.filter(connector_id__in={each.connector_id for each in counts})
    # Most facets count what they counted before, so a few statements serve for many rows.
    alike: dict[tuple[tuple[str, Any], ...], list[int]] = {}
    changed = set()
    for row in rows.defer("uri"):
        outcome = outcomes.get((row.connector_id, row.name_digest))
        if outcome is None:
            continue
        epoch = asked[row.connector_id][1]
        before = _shown(row, epoch, now)
        values = _values(row, outcome, epoch, now)
        alike.setdefault(tuple(values.items()), []).append(row.pk)
        for name, value in values.items():
            setattr(row, name, value)
        if _shown(row, epoch, now) != before:
            changed.add(row.connector_id)
    for values_of_all, pks in alike.items():
        ours.filter(pk__in=pks).update(**dict(values_of_all), lease_owner="", lease_until=None)
    return changed


def _values(
    row: StoredFacet, outcome: int | InvalidRead | Fault, epoch: int, now: datetime
) -> dict[str, Any]:
    """What a read changes. A failure leaves the count of the same connection where it is."""
    match outcome:
        case InvalidRead():
            failure = outcome.value
        case Fault():
            failure = outcome.message
        case _:
            return {
                "count": str(outcome),
                "read_at": now,
                "failed_at": None,
                "failure": "",
                "epoch": epoch,
            }
    failed = {"failed_at": now, "failure": failure, "epoch": epoch}
    return failed if row.epoch == epoch else failed | {"count": None, "read_at": None}


def facet_reading(row: StoredFacet, epoch: int) -> FacetReading:
    """A stored facet as the panel needs it; what an earlier connection brought does not count."""
    known: dict[str, Any] = {}
    if row.epoch == epoch:
        known = {"count": row.count, "read_at": row.read_at, "failed_at": row.failed_at}
    return FacetReading(row.name, row.title, Level(row.level), row.position, **known)


def _shown(row: StoredFacet, epoch: int, now: datetime) -> tuple[str, str | None, bool]:
    """What people see of a facet now: a change of this is a change of the panel."""
    reading = reading_of(facet_reading(row, epoch), now, policy())
    return reading.state, reading.count, reading.is_old
