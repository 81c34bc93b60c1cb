"""One round of reading: claim what is due, read it all at once, keep what comes as it comes."""

from __future__ import annotations

import logging
from datetime import datetime
from uuid import uuid4

from django.conf import settings
from django.db.models import F, Q
from django.utils import timezone

from connectors.actions import check_soon
from connectors.models import Listing, ListingKind
from connectors.protocol.facets import InvalidRead
from connectors.queries import targets_of
from connectors.runtime import run
from connectors.sessions import Fault, FaultKind, Sessions
from overview import counts
from overview.models import StoredFacet
from overview.reads import Asked, CountTaken, Reads, Taken
from workspaces import tallies

logger = logging.getLogger(__name__)

WINDOW_SECONDS = 0.1
"""Answers that come this close together are stored in one transaction and shown in one push."""

_LOST = frozenset({FaultKind.UNREACHABLE, FaultKind.CLOSED, FaultKind.UNAUTHORIZED})


def refresh(connector_ids: list[int]) -> None:
    """Read what is due of these connectors. What another process has claimed is left to it."""
    owner, now = uuid4().hex, timezone.now()
    asked, standing = _claim(connector_ids, owner, now)
    if not asked:
        return
    seconds = settings.FACET_READ_TIMEOUT_SECONDS
    reads = run(lambda sessions: _start(sessions, asked, seconds), 5)
    doubtful: set[int] = set()
    try:
        while taken := run(lambda _: reads.next(WINDOW_SECONDS), seconds * 2 + 5):
            counts.keep(taken, standing, owner=owner, now=timezone.now())
            _tally(taken)
            doubtful |= {each.connector_id for each in taken if _is_lost(each)}
    finally:
        run(lambda _: _stop(reads), 5)
    for connector_id in doubtful:
        # A failed read is no verdict on the connection; a check is, after its own quick retry.
        check_soon(connector_id)
    logger.info("Read facets", extra={"action": "facets_read", "connectors": len(asked)})


async def _start(sessions: Sessions, asked: list[Asked], seconds: float) -> Reads:
    return Reads(sessions, asked, seconds)


async def _stop(reads: Reads) -> None:
    reads.cancel()


def _tally(taken: list[Taken]) -> None:
    for each in taken:
        if isinstance(each, CountTaken):
            tallies.count("facet_reads", _word_for(each.outcome, "counted"))
            tallies.observe("facet_read_seconds", each.seconds)
        else:
            tallies.count("facet_listings", _word_for(each.listed, "listed"))


def _word_for(outcome: object, good: str) -> str:
    match outcome:
        case Fault():
            return outcome.kind.value
        case InvalidRead():
            return "invalid"
        case _:
            return good


def _is_lost(taken: Taken) -> bool:
    outcome = taken.outcome if isinstance(taken, CountTaken) else taken.listed
    return isinstance(outcome, Fault) and outcome.kind in _LOST


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
    known: dict[int, set[str]] = {}
    listed_before: set[int] = set()
    if to_list:
        rows = StoredFacet.objects.filter(connector_id__in=to_list)
        for pk, name in rows.values_list("connector_id", "name"):
            known.setdefault(pk, set()).add(name)
        current = Listing.objects.filter(connector_id__in=to_list, kind=ListingKind.RESOURCES)
        current = current.filter(taken_at__isnull=False, epoch=F("connector__epoch"))
        listed_before = set(current.values_list("connector_id", flat=True))
    targets = targets_of(ready.filter(pk__in=involved), now)
    asked = [
        Asked(
            target=target,
            facets=tuple(facets.get(pk, ())),
            is_listing=pk in to_list,
            is_first=pk in to_list and pk not in listed_before,
            known=frozenset(known.get(pk, ())),
        )
        for pk, target in targets.items()
    ]
    return asked, standing
