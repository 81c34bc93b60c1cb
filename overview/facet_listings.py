"""What is kept of a listing of resources: which facets a server has, and why others are none."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
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


def keep_listings(
    taken: Iterable[ListingTaken], epochs: Mapping[int, int], *, owner: str, now: datetime
) -> set[int]:
    """Store listings and their facets; the connectors whose panel may differ.

    Called in a transaction. epochs: connector id -> its epoch. A failed listing leaves the facets
    as they are; the first failure still changes the panel, for nobody waits for the first listing
    any more.
    """
    found, came = {}, {}
    for each in taken:
        facets, skipped = _facets_in(each.listed)
        found[each.connector_id] = each, facets
        came[each.connector_id, ListingKind.RESOURCES] = listings.Came(
            each.listed,
            epochs[each.connector_id],
            [{"name": none.name, "uri": none.uri, "reason": none.reason} for none in skipped],
        )
    changed, good = set(), {}
    for (pk, kind), before in listings.store(came, owner=owner, now=now).items():
        each, facets = found[pk]
        if isinstance(each.listed, Fault):
            _log_failure(before, each.listed)
            if each.is_first and before.failed_at is None:
                changed.add(pk)
            continue
        _log_new(pk, came[pk, kind].skipped, before.skipped)
        good[pk] = facets
        if each.is_first:
            changed.add(pk)
    return changed | _keep_facets(good, owner, now)


def _log_failure(before: Listing, fault: Fault) -> None:
    """Log a failure once, not with each try."""
    if before.failure != fault.message:
        extra = {"action": "facets_not_listed", "connector": before.connector_id}
        logger.warning("Facets could not be listed", extra=extra | {"reason": fault.message})


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


def _keep_facets(listed: Mapping[int, list[Facet]], owner: str, now: datetime) -> set[int]:
    """Make the stored facets those that were listed; the connectors that had others."""
    stored: dict[int, dict[str, StoredFacet]] = {pk: {} for pk in listed}
    for each in StoredFacet.objects.filter(connector_id__in=listed):
        stored[each.connector_id][each.name_digest] = each
    new: list[StoredFacet] = []
    moved: list[StoredFacet] = []
    gone: list[StoredFacet] = []
    for pk, facets in listed.items():
        for position, facet in enumerate(facets):
            row = stored[pk].pop(digest_of(facet.name), None)
            described = (facet.uri, facet.title, facet.level.value, position)
            if row is None:
                new.append(_new_row(pk, facet, position, owner, now))
            elif (row.uri, row.title, row.level, row.position) != described:
                row.uri, row.title, row.level, row.position = described
                moved.append(row)
        gone += stored[pk].values()
    # Most listings bring nothing new, and then none of these asks the database.
    StoredFacet.objects.bulk_create(new)
    StoredFacet.objects.bulk_update(moved, ["uri", "title", "level", "position"])
    StoredFacet.objects.filter(pk__in=[row.pk for row in gone]).delete()
    return {row.connector_id for row in [*new, *moved, *gone]}


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
