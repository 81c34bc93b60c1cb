"""What contact with a server taught us: whose check is due, who makes it, and what it says."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q

from connectors.actions import panel_of
from connectors.models import Check, Connector
from connectors.protocol.facets import advertises_facets
from connectors.protocol.freshness import retry_delay_seconds
from connectors.sessions import Connected, Fault, FaultKind
from connectors.status import SIGN_IN_LASTS, Connection

CHECK_LEASE_SECONDS = 30
MAX_PAUSE_SECONDS = 3600
"""A server that asks for a longer pause gets this one."""


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
        checked_at__lt=now - timedelta(seconds=settings.CHECK_WATCHED_SECONDS * 1.2),
        attempt=0,  # Not one whose server has just asked for a pause.
    )
    ahead = Q(check_due_at__gt=now + timedelta(seconds=2 * MAX_PAUSE_SECONDS))
    wanted = Q(asked_at__isnull=False, credential_refused_at__isnull=True)
    return free & wanted & (Q(check_due_at__lte=now) | watched | ahead)


def claim_check(connector_id: int, now: datetime) -> Connector | None:
    """Take the lease of a check that is due; None when another process has it, or none is due.

    A refused credential is not tried again: a server that answers a check without looking at it
    would make the connector seem ready.
    """
    claimed = Connector.objects.filter(check_due(now), pk=connector_id).update(
        check_lease_until=now + timedelta(seconds=CHECK_LEASE_SECONDS)
    )
    return Connector.objects.get(pk=connector_id) if claimed else None


def give_up_check(connector: Connector) -> None:
    """A connector that misses a setting cannot be checked: wait until an admin has filled it in."""
    Connector.objects.filter(pk=connector.pk, generation=connector.generation).update(
        check_due_at=None, check_lease_until=None
    )


@transaction.atomic
def record_contact(
    connector: Connector,
    outcome: Connected | Fault,
    *,
    latency_ms: int | None,
    is_watched: bool,
    now: datetime,
) -> None:
    """Turn what a check found into facts, unless the connector has changed meanwhile.

    connector: as it was when the check began; its generation decides. A refused credential waits
    for a person; everything else that fails is tried again with back-off.
    """
    facts: dict[str, object] = {"checked_at": now, "check_lease_until": None}
    match outcome:
        case Connected():
            facts |= _ready_facts(connector, outcome, latency_ms, is_watched, now)
        case Fault(kind=FaultKind.RATE_LIMITED) if connector.connection == Connection.READY:
            facts |= {
                "check_due_at": now + _pause(outcome, is_watched),
                "attempt": F("attempt") + 1,
            }
        case Fault():
            facts |= _failed_facts(connector, outcome, now)
    current = Connector.objects.filter(pk=connector.pk, generation=connector.generation)
    if current.filter(asked_at__isnull=False).update(**facts) != 1:
        return
    is_ok = isinstance(outcome, Connected)
    words = "Ready" if isinstance(outcome, Connected) else outcome.message
    Check.objects.create(
        connector_id=connector.pk, at=now, is_ok=is_ok, latency_ms=latency_ms, result=words[:200]
    )
    shown = ("connection", "advertises_facets", "credential_refused_at", "sign_in_needed")
    if any(name in facts and facts[name] != getattr(connector, name) for name in shown):
        panel_of(connector)


def _ready_facts(
    connector: Connector,
    outcome: Connected,
    latency_ms: int | None,
    is_watched: bool,
    now: datetime,
) -> dict[str, object]:
    facts: dict[str, object] = {
        "connection": Connection.READY,
        "called_at": now,
        "latency_ms": latency_ms,
        "credential_refused_at": None,
        "sign_in_needed": False,
        "failure": "",
        "failure_detail": "",
        "attempt": 0,
        "check_due_at": now + _pause(None, is_watched),
        "revision": outcome.revision,
        "server_name": (outcome.server_name or "")[:200],
        "server_version": (outcome.server_version or "")[:100],
        "capabilities": outcome.capabilities,
        "discovery": outcome.discovery,
        "advertises_facets": advertises_facets(outcome.capabilities),
    }
    if connector.connection != Connection.READY:
        facts["connection_since"] = now
    if connector.first_ready_at is None:
        facts["first_ready_at"] = now
    started = connector.sign_in_started_at
    if started is not None and now - started >= SIGN_IN_LASTS:
        # One that is under way is ended by who began it; an abandoned one was not needed.
        facts["sign_in_started_at"] = None
    return facts


def _failed_facts(connector: Connector, fault: Fault, now: datetime) -> dict[str, object]:
    facts: dict[str, object] = {
        "failure": fault.message,
        "failure_detail": _detail_of(fault),
        "attempt": F("attempt") + 1,
    }
    is_moved = fault.kind is FaultKind.REDIRECT
    connection = Connection.MOVED if is_moved else Connection.FAILED
    if connector.connection != connection:
        facts |= {"connection": connection, "connection_since": now}
    if connector.connection == Connection.READY:
        facts["epoch"] = F("epoch") + 1
    if fault.kind is FaultKind.UNAUTHORIZED:
        # A person has to act; trying again with what was refused would only lock accounts.
        refused = "credential_refused_at" if connector.first_ready_at else "sign_in_needed"
        facts |= {refused: now if connector.first_ready_at else True, "check_due_at": None}
        return facts
    delay = retry_delay_seconds(connector.attempt + 1, random.random)
    wait = max(delay, min(fault.retry_after_seconds or 0, MAX_PAUSE_SECONDS))
    facts["check_due_at"] = now + timedelta(seconds=wait)
    return facts


def _pause(fault: Fault | None, is_watched: bool) -> timedelta:
    """The wait until the next check of a ready connector, with jitter so that they spread out."""
    usual = settings.CHECK_WATCHED_SECONDS if is_watched else settings.CHECK_SECONDS
    asked = min(fault.retry_after_seconds or 0, MAX_PAUSE_SECONDS) if fault else 0
    return timedelta(seconds=max(usual * random.uniform(0.8, 1.2), asked))


def _detail_of(fault: Fault) -> str:
    status = f", HTTP {fault.http_status}" if fault.http_status else ""
    code = f", code {fault.code}" if fault.code is not None else ""
    return f"{fault.kind}{status}{code}: {fault.message}"
