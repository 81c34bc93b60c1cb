"""Whose check is due, who makes it, and when the next one is: times in the database."""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Greatest

from connectors.models import Connector
from connectors.sessions import Fault
from connectors.status import Connection

CHECK_LEASE_SECONDS = 30
MAX_PAUSE_SECONDS = 3600
"""A server that asks for a longer pause gets this one."""
JITTER = 0.2
"""Checks spread out over this share of their interval, after its end."""


def check_due(now: datetime) -> Q:
    """Whose check is due and in nobody's hands; a ready one's sooner while somebody looks at its
    workspace. What a clock that was set back has put further ahead than any pause is due too."""
    free = (
        Q(check_lease_until__isnull=True)
        | Q(check_lease_until__lt=now)
        | Q(check_lease_until__gt=now + timedelta(seconds=2 * CHECK_LEASE_SECONDS))
    )
    watched = Q(
        workspace__watched_until__gt=now,
        connection=Connection.READY,
        called_at__lt=now - timedelta(seconds=settings.CHECK_WATCHED_SECONDS * (1 + JITTER)),
        attempt=0,  # Not one whose server has just asked for a pause.
    )
    ahead = Q(check_due_at__gt=now + timedelta(seconds=2 * MAX_PAUSE_SECONDS))
    wanted = Q(asked_at__isnull=False, credential_refused_at__isnull=True)
    return free & wanted & (Q(check_due_at__lte=now) | watched | ahead)


def claim_checks(connector_ids: Iterable[int], now: datetime) -> dict[int, int]:
    """Take the leases of the checks that are due; the generations of the connectors whose lease is
    ours. Each check is one process's: whoever comes second waits here, and finds it leased.

    A refused credential is not tried again: a server that answers a check without looking at it
    would make the connector seem ready.
    """
    with transaction.atomic():
        due = (
            locked_connectors()
            .filter(check_due(now), pk__in=list(connector_ids))
            .only("generation")
        )
        claimed = {each.pk: each.generation for each in due}
        if claimed:
            Connector.objects.filter(pk__in=claimed).update(
                check_lease_until=now + timedelta(seconds=CHECK_LEASE_SECONDS)
            )
    return claimed


def give_up_checks(generations: dict[int, int]) -> None:
    """Connectors that miss a setting cannot be checked: wait until an admin has filled it in."""
    for pk, generation in generations.items():
        Connector.objects.filter(pk=pk, generation=generation).update(
            check_due_at=None, check_lease_until=None
        )


def spare_checks(connectors: Iterable[Connector], now: datetime) -> None:
    """Put off the checks of ready connectors whose servers have just answered a read: one would
    find out nothing else about the connection.

    connectors: locked by the caller. Not a check that is due already, which a failed call or a
    person may have asked for. And never longer than CHECK_SECONDS after the last one: what a
    server says of itself is in checks alone.
    """
    usual = timedelta(seconds=settings.CHECK_WATCHED_SECONDS)
    lately, last = now - usual * JITTER, now - timedelta(seconds=settings.CHECK_SECONDS)
    spared = [
        each.pk
        for each in connectors
        if each.attempt == 0
        and (each.check_due_at is not None and each.check_due_at > now)
        and (each.checked_at is not None and each.checked_at > last)
        and (each.called_at is None or each.called_at < lately)
    ]
    if spared:
        until = now + pause_until_next(None, is_watched=True)
        Connector.objects.filter(pk__in=spared).update(
            called_at=now, check_due_at=Greatest("check_due_at", until)
        )


def pause_until_next(fault: Fault | None, is_watched: bool) -> timedelta:
    """The wait until the next check of a ready connector, with jitter so that they spread out."""
    usual = settings.CHECK_WATCHED_SECONDS if is_watched else settings.CHECK_SECONDS
    asked = min(fault.retry_after_seconds or 0, MAX_PAUSE_SECONDS) if fault else 0
    return timedelta(seconds=max(usual * random.uniform(1, 1 + JITTER), asked))


def locked_connectors() -> QuerySet[Connector]:
    """For one transaction, in one order for all who lock many."""
    return Connector.objects.select_for_update(no_key=True, of=("self",)).order_by("pk")
