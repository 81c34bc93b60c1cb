"""One round of reading: claim what is due, read it all at once, keep what comes as it comes."""

from __future__ import annotations

import logging
from contextlib import closing
from datetime import datetime
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from connectors.actions import check_soon, doubt_connection
from connectors.arrivals import stored_apart, windows_of
from connectors.models import Listing, ListingKind
from connectors.queries import readable_targets
from connectors.sessions import Fault
from overview import counts
from overview.models import StoredFacet
from overview.reads import Asked, CountTaken, Reads, Taken, word_for
from workspaces import tallies

logger = logging.getLogger(__name__)


def refresh(connector_ids: list[int]) -> None:
    """Read what is due of these connectors. What another process has claimed is left to it."""
    owner, now = uuid4().hex, timezone.now()
    failed = _refresh(connector_ids, owner, now)
    # What belonged to a connector that changed meanwhile may be claimed anew at once. After an
    # error of ours it may not: the leases are the pause before the next try.
    counts.release(set(connector_ids) - failed, owner=owner)


def _refresh(connector_ids: list[int], owner: str, now: datetime) -> set[int]:
    """The connectors of which something could not be stored, for an error of ours."""
    asked, standing = _claim(connector_ids, owner, now)
    if not asked:
        return set()
    seconds = settings.FACET_READ_TIMEOUT_SECONDS
    doubted: set[int] = set()
    failed: set[int] = set()

    def store(taken: list[Taken]) -> None:
        counts.keep(taken, standing, owner=owner, now=timezone.now())

    reading = windows_of(lambda sessions: Reads(sessions, asked, seconds), seconds * 2 + 5)
    with closing(reading) as windows:
        for taken in windows:
            stored = stored_apart(store, taken)
            kept = {id(each) for each in stored}
            failed |= {each.connector_id for each in taken if id(each) not in kept}
            _tally(stored)
            # At once: a sibling that hangs must not keep the page from turning red.
            lost = {each.connector_id for each in taken if _is_lost(each)} - doubted
            for connector_id in lost:
                doubt_connection(connector_id)
            doubted |= lost
    logger.info("Read facets", extra={"action": "facets_read", "connectors": len(asked)})
    return failed


def _tally(taken: list[Taken]) -> None:
    for each in taken:
        if isinstance(each, CountTaken):
            tallies.count("facet_reads", word_for(each.outcome, "counted"))
            tallies.observe("facet_read_seconds", each.seconds)
        else:
            tallies.count("facet_listings", word_for(each.listed, "listed"))


def _is_lost(taken: Taken) -> bool:
    outcome = taken.outcome if isinstance(taken, CountTaken) else taken.listed
    return isinstance(outcome, Fault) and outcome.is_of_connection


def _claim(
    connector_ids: list[int], owner: str, now: datetime
) -> tuple[list[Asked], dict[int, tuple[int, int]]]:
    """Take the leases; what to ask of whom, and the (generation, epoch) of each connector asked."""
    ready = counts.readable(Q(pk__in=connector_ids))
    standing = {
        pk: (generation, epoch)
        for pk, generation, epoch in ready.values_list("pk", "generation", "epoch")
    }
    ids = list(standing)
    facets = counts.claim_counts(ids, owner=owner, now=now)
    to_list = set(counts.claim_listings(ids, owner=owner, now=now))
    involved = to_list | set(facets)
    if not involved:
        return [], {}
    targets, unreadable = readable_targets(ready.filter(pk__in=involved), now)
    for pk in unreadable:
        check_soon(pk)  # Which says so on its page.
    listing = _listing_asked(to_list, standing)
    asked = [
        Asked(target=target, facets=tuple(facets.get(pk, ())), **listing.get(pk, {}))
        for pk, target in targets.items()
    ]
    return asked, standing


def _listing_asked(
    connector_ids: set[int], standing: dict[int, tuple[int, int]]
) -> dict[int, dict[str, Any]]:
    """What belongs to the listing of each connector to list: fields of `Asked`."""
    if not connector_ids:
        return {}
    known: dict[int, set[str]] = {}
    rows = StoredFacet.objects.filter(connector_id__in=connector_ids)
    for pk, name in rows.values_list("connector_id", "name"):
        known.setdefault(pk, set()).add(name)
    asked: dict[int, dict[str, Any]] = {}
    stored = Listing.objects.filter(connector_id__in=connector_ids, kind=ListingKind.RESOURCES)
    columns = ("connector_id", "taken_at", "epoch", "connector__capabilities")
    for pk, taken_at, epoch, capabilities in stored.values_list(*columns):
        has_resources = isinstance((capabilities or {}).get("resources"), dict)
        if not has_resources:
            extra = {"action": "facets_without_resources", "connector": pk}
            logger.warning("A server advertises facets but no resources", extra=extra)
        asked[pk] = {
            "is_listing": True,
            "is_first": taken_at is None or epoch != standing[pk][1],
            "has_resources": has_resources,
            "known": frozenset(known.get(pk, ())),
        }
    return asked
