"""The worker's share of this app: checks, listings of templates and tools, and forgetting."""

from __future__ import annotations

import threading
from datetime import timedelta
from uuid import uuid4

from celery import shared_task
from django.conf import settings
from django.contrib.sessions.models import Session
from django.utils import timezone

from connectors.checks import look_at
from connectors.contact import check_due, claim_check, give_up_check
from connectors.listings import due_to_list
from connectors.models import Check, Connector, Listing, PendingSignIn, ToolCall
from connectors.probe import take_listings
from connectors.sessions import Connected
from workspaces.models import AuditEntry

QUEUED_SECONDS = 10
"""What waited longer for a worker is dropped: it is still due, and has been queued again since."""

_slots = threading.BoundedSemaphore(max(1, settings.CELERY_WORKER_CONCURRENCY // 2))
"""Half of a worker's threads wait for silent servers at most; the others read counts meanwhile."""


@shared_task
def sweep_checks() -> None:
    """Queue a check for each connector that is due, sooner while its workspace is watched."""
    due = Connector.objects.filter(check_due(timezone.now()))
    for connector_id in due.values_list("pk", flat=True):
        check_connector.delay(connector_id)


@shared_task(expires=QUEUED_SECONDS)
def check_connector(connector_id: int) -> None:
    """Look whether a connector's server answers, and store what that says of its connection.

    Without a free slot it stays due, for the next sweep.
    """
    if not _slots.acquire(blocking=False):
        return
    try:
        now = timezone.now()
        connector = claim_check(connector_id, now)
        outcome = look_at(connector, now) if connector else None
    finally:
        _slots.release()
    if isinstance(outcome, Connected):
        # Mostly there is none: asking is cheaper than a task that finds out.
        due = Listing.objects.filter(due_to_list(timezone.now()), connector_id=connector_id)
        if due.exists():
            list_connector.delay(connector_id)
    elif connector is not None and outcome is None:
        give_up_check(connector)


@shared_task
def list_connector(connector_id: int) -> None:
    """Take the listings of a ready connector's templates and tools when they are due."""
    take_listings(connector_id, uuid4().hex, timezone.now())


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
