"""What the pages of connectors show of facets: counts with their age, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count

from connectors.models import Connector, Listing
from connectors.protocol.facets import Level
from connectors.protocol.text import flatten, shorten
from overview.counts import policy
from overview.models import StoredFacet
from overview.panel import FacetReading, Reading, reading_of
from workspaces.models import Workspace


@dataclass(frozen=True, slots=True)
class FacetLine:
    """One facet. reason: why its last read brought no count; empty if it did."""

    title: str
    level: Level
    reading: Reading
    failed_at: datetime | None
    reason: str


@dataclass(frozen=True, slots=True)
class SkippedLine:
    """An entry that is marked as a facet and is none."""

    name: str
    reason: str


def facet_lines(connector: Connector, now: datetime) -> list[FacetLine]:
    """The facets in the server's order, each as the panel takes it now."""
    return [
        _line(row, connector.epoch, now)
        for row in StoredFacet.objects.filter(connector=connector).order_by("position")
    ]


def _line(row: StoredFacet, epoch: int, now: datetime) -> FacetLine:
    known: dict[str, Any] = {}
    # What an earlier connection brought does not count, nor why it failed.
    if row.epoch == epoch:
        known = {"count": row.count, "read_at": row.read_at, "failed_at": row.failed_at}
    facet = FacetReading(row.name, row.title, Level(row.level), row.position, **known)
    return FacetLine(
        title=flatten(row.title),
        level=facet.level,
        reading=reading_of(facet, now, policy()),
        failed_at=facet.failed_at,
        reason=row.failure if facet.failed_at else "",
    )


def skipped_lines(listing: Listing | None) -> list[SkippedLine]:
    """The entries of the last listing that were left out."""
    skipped = listing.skipped if listing else []
    return [
        SkippedLine(
            shorten(each.get("name") or each.get("uri") or "without a name"), each["reason"]
        )
        for each in skipped
    ]


def facet_counts(workspace: Workspace) -> dict[int, int]:
    """How many facets each connector of a workspace has; one that has none is not in it."""
    rows = StoredFacet.objects.filter(connector__workspace=workspace).order_by()
    return dict(rows.values_list("connector_id").annotate(Count("pk")))
