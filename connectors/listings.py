"""The stored listings of a connector's resources, templates and tools: leases and results.

Shell. Whoever claims a listing takes it; the claim is one conditional UPDATE and expires by itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.db.models import F, Q

from connectors.models import Connector, Listing, ListingKind
from connectors.sessions import Fault, Listed

LEASE_SECONDS = 20
"""Longer than a listing may take, short enough that a killed process delays nobody for long."""
_FREE: Final = {"lease_owner": "", "lease_until": None}

ENDPOINT_USE_SECONDS = 3600
"""For how long after an outside client's last request resources are listed for the next one."""


def for_endpoint(now: datetime) -> Q:
    """Listings of resources that nobody takes but for the endpoint, while it is in use.

    Those of connectors with facets are taken for the overview. All others are asked for their
    resources by outside clients alone, and never because of facets (F-007).
    """
    ours = Connector.objects.filter(in_use_from_outside(now), advertises_facets=False)
    return Q(kind=ListingKind.RESOURCES, connector__in=ours.values("pk"))


def in_use_from_outside(now: datetime) -> Q:
    """Connectors of the workspaces whose endpoint was used lately."""
    return Q(workspace__endpoint_used_at__gt=now - timedelta(seconds=ENDPOINT_USE_SECONDS))


def has_passed(field: str, seconds: float, now: datetime) -> Q:
    """Whether a stored moment is this long ago, or as far ahead: then a clock was set back, and
    waiting for it again would stop all reading."""
    length = timedelta(seconds=seconds)
    return Q(**{f"{field}__lte": now - length}) | Q(**{f"{field}__gte": now + length})


def is_free(now: datetime, seconds: float) -> Q:
    """Whether nobody holds a lease: none taken, or past, or so far ahead that a clock was set back.

    seconds: how long a lease lasts. Another process took its lease a moment after our `now`, so
    that one which ends a little later than ours would is no sign of a clock.
    """
    return (
        Q(lease_until__isnull=True)
        | Q(lease_until__lt=now)
        | Q(lease_until__gt=now + timedelta(seconds=2 * seconds))
    )


def due(now: datetime, interval_seconds: float, retry_seconds: float) -> Q:
    """Listings that are older than the interval or of an earlier connection, and not just failed.

    Source: Facets, "at most every five minutes"; D-F7, D-R17.
    """
    is_old = (
        Q(taken_at__isnull=True)
        | has_passed("taken_at", interval_seconds, now)
        | ~Q(epoch=F("connector__epoch"))
    )
    has_paused = Q(failed_at__isnull=True) | has_passed("failed_at", retry_seconds, now)
    return is_old & has_paused & is_free(now, LEASE_SECONDS)


def due_to_list(now: datetime) -> Q:
    """The due listings that `connectors.tasks.list_connectors` takes."""
    ours = ~Q(kind=ListingKind.RESOURCES) | for_endpoint(now)
    return ours & due(now, settings.TEMPLATE_LISTING_SECONDS, settings.FACET_LISTING_RETRY_SECONDS)


def claim(
    connector_ids: Iterable[int],
    kind: ListingKind,
    *,
    owner: str,
    now: datetime,
    interval_seconds: float,
    retry_seconds: float,
) -> list[int]:
    """Take the lease of the due listings; the ids of the connectors whose lease is ours now."""
    mine = Listing.objects.filter(connector_id__in=list(connector_ids), kind=kind)
    claimed = mine.filter(due(now, interval_seconds, retry_seconds)).update(
        lease_owner=owner, lease_until=now + timedelta(seconds=LEASE_SECONDS)
    )
    if not claimed:
        return []
    return list(mine.filter(lease_owner=owner).values_list("connector_id", flat=True))


def release(connector_ids: Iterable[int], owner: str) -> None:
    """Give back the leases of listings that are not taken after all."""
    held = Listing.objects.filter(connector_id__in=list(connector_ids), lease_owner=owner)
    held.update(**_FREE)


@dataclass(frozen=True, slots=True)
class Came:
    """What a server listed, or why it did not.

    skipped: the entries that are of no use, with the reason. epoch: that of the connection.
    """

    listed: Listed | Fault
    epoch: int
    skipped: list[dict[str, str | None]] = field(default_factory=list)


def store(
    came: Mapping[tuple[int, ListingKind], Came], *, owner: str, now: datetime
) -> dict[tuple[int, ListingKind], Listing]:
    """Keep the listings that this owner took: by connector id and kind, as they were before. What
    is not among these had lost its lease meanwhile, and is dropped.

    A failed one replaces nothing: the last good listing stays in use (F-038, F-056). Mostly a
    server lists what it listed before, so a few statements serve for many.
    """
    ours = Listing.objects.filter(lease_owner=owner)
    before: dict[tuple[int, ListingKind], Listing] = {}
    same: dict[int, list[int]] = {}
    for row in ours.filter(connector_id__in={pk for pk, _ in came}):
        key = row.connector_id, ListingKind(row.kind)
        if key not in came:
            continue
        if _is_same(row, came[key]):
            same.setdefault(came[key].epoch, []).append(row.pk)
        elif not ours.filter(pk=row.pk).update(**_FREE, **_changes(came[key], now)):
            continue
        before[key] = row
    for epoch, pks in same.items():
        ours.filter(pk__in=pks).update(**_FREE, **_young(now, epoch))
    return before


def _is_same(row: Listing, came: Came) -> bool:
    """Whether a server listed what is stored, to the letter."""
    if isinstance(came.listed, Fault) or row.cut_short != (came.listed.cut_short or ""):
        return False
    # As text: to Python 1 is True.
    return json.dumps([row.entries, row.skipped]) == json.dumps([came.listed.entries, came.skipped])


def _changes(came: Came, now: datetime) -> dict[str, Any]:
    if isinstance(came.listed, Fault):
        return {"failed_at": now, "failure": came.listed.message}
    return _young(now, came.epoch) | {
        "entries": came.listed.entries,
        "skipped": came.skipped,
        "cut_short": came.listed.cut_short or "",
    }


def _young(now: datetime, epoch: int) -> dict[str, Any]:
    return {"taken_at": now, "failed_at": None, "failure": "", "epoch": epoch}
