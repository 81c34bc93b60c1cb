"""What is kept of a listing of resources: which facets a server has, and why others are none."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.conf import settings

from connectors import listings
from connectors.models import Listing, ListingKind
from connectors.protocol.facets import Facet, Skipped, parse_listing
from connectors.sessions import Fault, Listed
from overview.models import StoredFacet, digest_of
from overview.reads import ListingTaken

logger = logging.getLogger(__name__)

LOGGED_ENTRIES = 20
"""Of the entries that one listing leaves out so many are logged; the connector's page has all."""


def keep_listing(taken: ListingTaken, *, owner: str, now: datetime, epoch: int) -> bool:
    """Store a listing and its facets; True when the panel may differ.

    Called in a transaction. A failed listing leaves the facets as they are; the first failure
    still changes the panel, for nobody waits for the first listing any more.
    """
    pk = taken.connector_id
    facets, skipped = _facets_in(taken.listed)
    kept = [{"name": each.name, "uri": each.uri, "reason": each.reason} for each in skipped]
    before = Listing.objects.get(connector_id=pk, kind=ListingKind.RESOURCES)
    is_ours = listings.store(
        pk,
        ListingKind.RESOURCES,
        taken.listed,
        owner=owner,
        now=now,
        epoch=epoch,
        skipped=kept,
    )
    if not is_ours:
        return False
    if isinstance(taken.listed, Fault):
        if before.failure != taken.listed.message:
            extra = {"action": "facets_not_listed", "connector": pk, "reason": taken.listed.message}
            logger.warning("Facets could not be listed", extra=extra)
        return taken.is_first and before.failed_at is None
    _log_new(pk, kept, before.skipped)
    return _keep_facets(pk, facets, owner, now) or taken.is_first


def _log_new(
    connector_id: int, skipped: list[dict[str, str | None]], before: list[dict[str, str | None]]
) -> None:
    """Log each entry that is left out once, not with each listing."""
    known = {tuple(each.values()) for each in before}
    new = [each for each in skipped if tuple(each.values()) not in known]
    for each in new[:LOGGED_ENTRIES]:
        extra = {"action": "facet_skipped", "connector": connector_id, "resource": each["name"]}
        extra |= {"uri": each["uri"], "reason": each["reason"]}
        logger.warning("A marked resource is no facet", extra=extra)


def _keep_facets(connector_id: int, facets: list[Facet], owner: str, now: datetime) -> bool:
    """Make the stored facets those that were listed; True when they were others."""
    rows = StoredFacet.objects.filter(connector_id=connector_id)
    stored = {row.name_digest: row for row in rows}
    new, moved = [], []
    for position, facet in enumerate(facets):
        row = stored.pop(digest_of(facet.name), None)
        described = (facet.uri, facet.title, facet.level.value, position)
        if row is None:
            new.append(_new_row(connector_id, facet, position, owner, now))
        elif (row.uri, row.title, row.level, row.position) != described:
            row.uri, row.title, row.level, row.position = described
            moved.append(row)
    StoredFacet.objects.bulk_create(new)
    StoredFacet.objects.bulk_update(moved, ["uri", "title", "level", "position"])
    StoredFacet.objects.filter(pk__in=[row.pk for row in stored.values()]).delete()
    return bool(new or moved or stored)


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
