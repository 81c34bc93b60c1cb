"""Which connectors are to be read, and which of them now.

Counts that were read together would be due together for ever: after a start, or when everybody
opens their pages in the morning, the whole host would be read in one burst each minute, and pages
wait for it. So what nobody waits for, a good count that has only become old, is read at a pace.
"""

from __future__ import annotations

import heapq
import math
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import Count, F, Min, Q, QuerySet

from connectors.models import Listing, ListingKind
from overview.counts import counts_due, listings_due, policy, readable
from overview.models import StoredFacet

PACE: Final = 1.5
"""How much faster than once per period: what is late catches up in two thirds of one."""
LEAST: Final = 20
"""So many at once trouble nobody."""
_CURRENT: Final = F("connector__epoch")


def due_connectors(workspaces: Q, now: datetime) -> list[int]:
    """The connectors with something to read, in two statements."""
    ids = {*_due_counts(workspaces, now).values_list("connector_id", flat=True)}
    return sorted(ids.union(due_listings(workspaces, now)))


def due_listings(workspaces: Q, now: datetime) -> list[int]:
    """The connectors whose resources are to be listed again."""
    return list(_due_listings(workspaces, now).values_list("connector_id", flat=True))


def due_at_pace(workspaces: Q, now: datetime) -> list[int]:
    """Of the due connectors all that somebody waits for, and the oldest of the others: as many as a
    sweep each second should take. In three statements."""
    ready, times = readable(workspaces).count(), policy()
    counts = _paced(_due_counts(workspaces, now), "read_at", ready / times.fresh_seconds)
    lists = _paced(_due_listings(workspaces, now), "taken_at", ready / times.listing_seconds)
    return sorted(counts | lists)


def _due_counts(workspaces: Q, now: datetime) -> QuerySet[StoredFacet]:
    ready = readable(workspaces).values("pk")
    shown_since = now - timedelta(seconds=policy().max_age_seconds)
    # Not null, so that no comparison makes the whole unknown.
    is_shown = Q(read_at__isnull=False, read_at__gte=shown_since)
    return StoredFacet.objects.filter(counts_due(now), connector__in=ready).annotate(
        is_good=is_shown & Q(failed_at=None, changed_at=None, epoch=_CURRENT)
    )


def _due_listings(workspaces: Q, now: datetime) -> QuerySet[Listing]:
    ready = readable(workspaces).values("pk")
    due = Listing.objects.filter(listings_due(now), connector__in=ready, kind=ListingKind.RESOURCES)
    return due.annotate(is_good=Q(taken_at__isnull=False, failed_at=None, epoch=_CURRENT))


def _paced(due: QuerySet[Any], taken: str, per_second: float) -> set[int]:
    """taken: the column that says when a row was read. per_second: how many connectors have to be
    read, so that each has its turn in time."""
    rows = due.values_list("connector_id").annotate(
        oldest=Min(taken), waited_for=Count("pk", filter=Q(is_good=False))
    )
    waited_for, old = set(), []
    for connector_id, oldest, bad in rows:
        if bad:
            waited_for.add(connector_id)
        else:
            old.append((oldest, connector_id))
    some = heapq.nsmallest(max(LEAST, math.ceil(per_second * PACE)), old)
    return waited_for | {connector_id for _, connector_id in some}
