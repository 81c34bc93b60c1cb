"""The worker's share of the overview: find what is due while somebody looks, and read it."""

from __future__ import annotations

from celery import shared_task
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from connectors.actions import restart_connections
from connectors.listings import in_use_from_outside
from connectors.models import Connector
from connectors.tasks import QUEUED_SECONDS
from overview.due import due_at_pace, due_connectors, due_listings
from overview.operators.health import worker_heard
from overview.refresh import refresh
from overview.subscriptions import listen_to_more
from workspaces.actions import keep_watched
from workspaces.models import Workspace

GROUP_SIZE = 50
"""Connectors read by one task: enough to share its statements, few enough to spread the work."""


def queue_reads(due: list[int]) -> None:
    """Queue the reads of these connectors. Queued twice, they are still read once."""
    for start in range(0, len(due), GROUP_SIZE):
        refresh_connectors.delay(due[start : start + GROUP_SIZE])


@shared_task
def sweep_facets() -> None:
    """Queue what is due in the workspaces that somebody looks at.

    An outside client looks at resources alone, so that where only one is at work, it is their
    listing that decides.
    """
    worker_heard()
    now = timezone.now()
    queue_reads(due_at_pace(Q(workspace__watched_until__gt=now), now))
    queue_reads(due_listings(in_use_from_outside(now), now))


@shared_task
def sweep_subscriptions() -> None:
    """Listen to the servers of watched workspaces that tell when a count changes."""
    listen_to_more()


@shared_task
def refresh_workspace(workspace_id: int) -> None:
    """Queue what is due in a workspace that somebody has just opened."""
    queue_reads(due_connectors(Q(workspace_id=workspace_id), timezone.now()))


def watch(workspace: Workspace) -> None:
    """Somebody looks at a workspace. One that nobody watched is read at once: who opens its page
    should not wait for the next sweep, nor see an error when the broker is away."""
    if keep_watched(workspace):
        transaction.on_commit(lambda: refresh_workspace.delay(workspace.pk), robust=True)


@shared_task(expires=QUEUED_SECONDS)
def refresh_connectors(connector_ids: list[int]) -> None:
    """Read what is due of these connectors; each read carries its own deadline."""
    refresh(connector_ids)


def host_started() -> None:
    """This process is the whole host and has just started: no connection is known to stand."""
    restart_connections(Connector.objects.all(), timezone.now())
