"""The worker's share of this app: checks, listings of templates and tools, and forgetting."""

from __future__ import annotations

import logging
import threading
from contextlib import closing
from datetime import datetime, timedelta
from uuid import uuid4

from celery import shared_task
from django.conf import settings
from django.contrib.sessions.models import Session
from django.db.models import F, QuerySet
from django.utils import timezone
from kombu.exceptions import OperationalError as BrokerError

from connectors.check_leases import check_due, claim_checks
from connectors.checks import look_at_all
from connectors.listing_reads import take_listings
from connectors.listings import due_to_list
from connectors.models import Check, Connector, Listing, PendingSignIn, ToolCall
from connectors.queries import is_ready
from connectors.sessions import Connected
from workspaces.models import AuditEntry

logger = logging.getLogger(__name__)

QUEUED_SECONDS = 10
"""What waited longer for a worker is dropped: it is still due, and has been queued again since."""

GROUP_SIZE = 50
"""Connectors of one task: enough to share its statements, few enough to spread the work."""

_slots = threading.BoundedSemaphore(max(1, settings.CELERY_WORKER_CONCURRENCY // 2))
"""Half of a worker's threads wait for silent servers at most; the others read counts meanwhile."""


@shared_task
def sweep_checks() -> None:
    """Queue the checks that are due, sooner while their workspace is watched.

    Servers that did not answer come last, and together: a group takes as long as its slowest.
    """
    due = Connector.objects.filter(check_due(timezone.now())).order_by("attempt", "pk")
    ids = list(due.values_list("pk", flat=True))
    for start in range(0, len(ids), GROUP_SIZE):
        check_connectors.delay(ids[start : start + GROUP_SIZE])


@shared_task(expires=QUEUED_SECONDS)
def check_connectors(connector_ids: list[int]) -> None:
    """Look whether the servers of some connectors answer, and store what that says of them."""
    _check(connector_ids)


@shared_task(expires=QUEUED_SECONDS)
def check_connector(connector_id: int) -> None:
    """One that somebody wants checked now."""
    _check([connector_id])


def _check(connector_ids: list[int]) -> None:
    """Make the checks that are due and nobody else's. Without a free slot they stay due, for the
    next sweep."""
    if not _slots.acquire(blocking=False):
        return
    try:
        now = timezone.now()
        with closing(look_at_all(claim_checks(connector_ids, now), now)) as windows:
            for contacts in windows:
                answered = [
                    each.connector_id for each in contacts if isinstance(each.outcome, Connected)
                ]
                # Mostly nothing is due: asking is cheaper than a task that finds out.
                queue_listings(answered, timezone.now())
    finally:
        _slots.release()


def queue_listings(connectors: list[int] | QuerySet[Connector], now: datetime) -> None:
    """Queue what is due of the listings of these ready connectors, in one statement.

    Without a broker they stay due, and are queued with the next check: whoever asks goes on.
    """
    due = Listing.objects.filter(due_to_list(now), connector__in=connectors)
    ids = sorted(set(due.values_list("connector_id", flat=True)))
    try:
        for start in range(0, len(ids), GROUP_SIZE):
            list_connectors.delay(ids[start : start + GROUP_SIZE])
    except BrokerError:
        logger.warning("Listings could not be queued", extra={"action": "listings_not_queued"})


@shared_task
def list_connectors(connector_ids: list[int]) -> None:
    """Take the listings of ready connectors' templates and tools that are due."""
    asked = take_listings(connector_ids, uuid4().hex, timezone.now())
    # What was connected anew meanwhile is due again, and nobody could queue it.
    anew = Connector.objects.filter(
        is_ready(),
        pk__in=asked,
        listings__epoch__lt=F("epoch"),
        listings__taken_at__isnull=False,
        listings__failed_at=None,
    )
    queue_listings(anew, timezone.now())


@shared_task
def list_connector(connector_id: int) -> None:
    """Of one: what an earlier version queued."""
    list_connectors([connector_id])


@shared_task
def forget_old() -> None:
    """Delete traces, checks, audit lines and sessions that are past their time, in batches."""
    now = timezone.now()
    old = [
        ToolCall.objects.filter(started_at__lt=now - timedelta(days=settings.TRACE_DAYS)),
        Check.objects.filter(at__lt=now - timedelta(days=1)),
        PendingSignIn.objects.filter(started_at__lt=now - timedelta(hours=1)),
        AuditEntry.objects.filter(at__lt=now - timedelta(days=settings.AUDIT_DAYS)),
        Session.objects.filter(expire_date__lt=now),
    ]
    for rows in old:
        while batch := list(rows.values_list("pk", flat=True)[:1000]):
            rows.model._default_manager.filter(pk__in=batch).delete()
