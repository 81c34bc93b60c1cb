"""The counts of facets: who reads them when, and what is kept. Shell around protocol.freshness.

A read is claimed by one conditional UPDATE whose lease expires by itself, so that everybody in
every process shares one read and a killed process blocks nobody. What a late answer brings is kept
only while its lease still stands and its connector is the one that was asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet

from connectors import listings
from connectors.check_leases import locked_connectors, spare_checks
from connectors.models import Connector, ListingKind
from connectors.protocol.facets import Facet, InvalidRead, Level
from connectors.protocol.freshness import Policy
from connectors.queries import is_ready
from connectors.sessions import Fault, Listed
from overview.facet_listings import keep_listings
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
    """Stored facets to read again: not fresh, told to have changed, or of an earlier connection;
    and not just failed.

    A count that ends is read once more at once, whatever failed just before (F-113), and so is one
    whose connection is another one since (F-146).
    """
    times = policy()
    max_age = timedelta(seconds=times.max_age_seconds)
    is_of_another = ~Q(epoch=F("connector__epoch"))
    is_old = (
        Q(read_at__isnull=True)
        | Q(changed_at__isnull=False)
        | listings.has_passed("read_at", times.fresh_seconds, now)
        | is_of_another
    )
    has_ended = Q(read_at__lt=now - max_age, failed_at__lte=F("read_at") + max_age)
    has_paused = Q(failed_at__isnull=True) | listings.has_passed(
        "failed_at", times.retry_seconds, now
    )
    return (
        is_old & (has_paused | has_ended | is_of_another) & listings.is_free(now, _lease_seconds())
    )


def _lease_seconds() -> float:
    return float(settings.FACET_READ_TIMEOUT_SECONDS * 2 + LEASE_MARGIN_SECONDS)


def listings_due(now: datetime) -> Q:
    """Listings of resources to take again."""
    times = policy()
    return listings.due(now, times.listing_seconds, times.listing_retry_seconds)


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
    stored = StoredFacet.objects.filter(connector_id__in=connector_ids)
    claimed = stored.filter(counts_due(now)).update(
        lease_owner=owner,
        lease_until=now + timedelta(seconds=_lease_seconds()),
        # What is told from now on is not in the answer for sure.
        changed_at=None,
    )
    mine: dict[int, list[Facet]] = {}
    if claimed:
        for row in stored.filter(lease_owner=owner).order_by("position"):
            facet = Facet(row.name, row.uri, row.title, Level(row.level))
            mine.setdefault(row.connector_id, []).append(facet)
    return mine


def release(connector_ids: Iterable[int], *, owner: str) -> None:
    """Give back the leases of what was claimed and never stored, e.g. of a changed connector."""
    ids = list(connector_ids)
    held = StoredFacet.objects.filter(connector_id__in=ids, lease_owner=owner)
    held.update(lease_owner="", lease_until=None)
    listings.release(ids, owner)


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
    # Locked: a connector that is removed or changed now waits until its readings are stored, or is
    # seen to be gone or another one.
    asked_of = {each.connector_id for each in taken}
    rows = locked_connectors().filter(is_ready(), pk__in=asked_of).only(*_KEPT_BY)
    current = {
        each.pk: each for each in rows if asked.get(each.pk) == (each.generation, each.epoch)
    }
    spare_checks([current[pk] for pk in current.keys() & _who_answered(taken)], now)
    kept = [each for each in taken if each.connector_id in current]
    listings_taken = [each for each in kept if isinstance(each, ListingTaken)]
    epochs = {pk: connector.epoch for pk, connector in current.items()}
    changed = keep_listings(listings_taken, epochs, owner=owner, now=now)
    counts = [each for each in kept if isinstance(each, CountTaken)]
    changed |= _keep_counts(counts, epochs, owner=owner, now=now)
    workspaces = {each.workspace_id for pk, each in current.items() if pk in changed}
    for workspace_id in sorted(each for each in workspaces if each is not None):
        panel_changed(workspace_id)


_KEPT_BY = (
    *("workspace_id", "generation", "epoch"),
    *("attempt", "check_due_at", "checked_at", "called_at"),
)


def _who_answered(taken: Iterable[ListingTaken | CountTaken]) -> set[int]:
    """The connectors whose server gave what was asked for; one without resources was not asked."""
    return {
        each.connector_id
        for each in taken
        if (
            isinstance(each.outcome, int)
            if isinstance(each, CountTaken)
            else isinstance(each.listed, Listed) and each.listed.pages > 0
        )
    }


def _keep_counts(
    counts: list[CountTaken], epochs: Mapping[int, int], *, owner: str, now: datetime
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
        epoch = epochs[row.connector_id]
        # Pages show what they were told last, or what time has made of it since.
        before = {_shown(row, epoch, now), _shown(row, epoch, _written_at(row, now))}
        values = _values(row, outcome, epoch, now)
        alike.setdefault(tuple(values.items()), []).append(row.pk)
        for name, value in values.items():
            setattr(row, name, value)
        if before != {_shown(row, epoch, now)}:
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


def _written_at(row: StoredFacet, now: datetime) -> datetime:
    return max((each for each in (row.read_at, row.failed_at) if each), default=now)


def _shown(row: StoredFacet, epoch: int, now: datetime) -> tuple[str, str | None, bool]:
    """What people see of a facet now: a change of this is a change of the panel."""
    reading = reading_of(facet_reading(row, epoch), now, policy())
    return reading.state, reading.count, reading.is_old
