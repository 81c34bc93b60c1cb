"""What contact with a server taught us: what a check says of a connection, as facts."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction

from connectors.check_leases import MAX_PAUSE_SECONDS, locked_connectors, pause_until_next
from connectors.models import Check, Connector
from connectors.protocol.facets import advertises_facets
from connectors.protocol.freshness import retry_delay_seconds
from connectors.sessions import Connected, Fault, FaultKind
from connectors.status import SIGN_IN_LASTS, Connection
from workspaces.push import panel_changed


@dataclass(frozen=True, slots=True)
class Contact:
    """What came of asking a connector's server. generation: the one that was asked."""

    connector_id: int
    generation: int
    outcome: Connected | Fault
    latency_ms: int | None = None


@transaction.atomic
def record_contacts(contacts: Iterable[Contact], now: datetime) -> None:
    """Turn what checks found into facts, unless a connector has changed meanwhile.

    A refused credential waits for a person; everything else that fails is tried again with
    back-off. A server that answers as it did before costs no statement of its own.
    """
    came = {each.connector_id: each for each in contacts}
    steady: list[Connector] = []
    checks: list[Check] = []
    changed: set[int] = set()
    current = (
        locked_connectors().filter(pk__in=came, asked_at__isnull=False).select_related("workspace")
    )
    for connector in current:
        contact = came[connector.pk]
        if contact.generation != connector.generation:
            continue
        facts = _facts(connector, contact, now)
        news = {name for name, value in facts.items() if getattr(connector, name) != value}
        if news <= _OF_EACH_SUCCESS:
            for name in _OWN:
                setattr(connector, name, facts[name])
            steady.append(connector)
        else:
            Connector.objects.filter(pk=connector.pk).update(**facts)
        checks.append(_check(contact, now))
        if news & _SHOWN and connector.workspace_id is not None:
            changed.add(connector.workspace_id)
    _keep_steady(steady, now)
    Check.objects.bulk_create(checks)
    for workspace_id in sorted(changed):
        panel_changed(workspace_id)


_OWN = ("latency_ms", "check_due_at")
_OF_EACH_SUCCESS = {"checked_at", "check_lease_until", "called_at", *_OWN}
_SHOWN = {"connection", "advertises_facets", "credential_refused_at", "sign_in_needed"}


def _keep_steady(connectors: list[Connector], now: datetime) -> None:
    """What alone is new of servers that answered as they did before, in two statements."""
    if connectors:
        alike = Connector.objects.filter(pk__in=[each.pk for each in connectors])
        alike.update(checked_at=now, called_at=now, check_lease_until=None)
        Connector.objects.bulk_update(connectors, _OWN)


def _facts(connector: Connector, contact: Contact, now: datetime) -> dict[str, object]:
    workspace, outcome = connector.workspace, contact.outcome
    watched_until = workspace.watched_until if workspace else None
    is_watched = watched_until is not None and watched_until > now
    facts: dict[str, object] = {"checked_at": now, "check_lease_until": None}
    match outcome:
        case Connected():
            return facts | _ready_facts(connector, outcome, contact.latency_ms, is_watched, now)
        case Fault(kind=FaultKind.RATE_LIMITED) if connector.connection == Connection.READY:
            due_at = now + pause_until_next(outcome, is_watched)
            return facts | {"check_due_at": due_at, "attempt": connector.attempt + 1}
        case Fault():
            return facts | _failed_facts(connector, outcome, now)


def _check(contact: Contact, now: datetime) -> Check:
    is_ok = isinstance(contact.outcome, Connected)
    words = "Ready" if isinstance(contact.outcome, Connected) else contact.outcome.message
    return Check(
        connector_id=contact.connector_id,
        at=now,
        is_ok=is_ok,
        latency_ms=contact.latency_ms,
        result=words[:200],
    )


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
        "check_due_at": now + pause_until_next(None, is_watched),
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
        "attempt": connector.attempt + 1,
    }
    is_moved = fault.kind is FaultKind.REDIRECT
    connection = Connection.MOVED if is_moved else Connection.FAILED
    if connector.connection != connection:
        facts |= {"connection": connection, "connection_since": now}
    if connector.connection == Connection.READY:
        facts["epoch"] = connector.epoch + 1
    if fault.kind is FaultKind.UNAUTHORIZED:
        # A person has to act; trying again with what was refused would only lock accounts.
        refused = "credential_refused_at" if connector.first_ready_at else "sign_in_needed"
        facts |= {refused: now if connector.first_ready_at else True, "check_due_at": None}
        return facts
    delay = retry_delay_seconds(connector.attempt + 1, random.random)
    wait = max(delay, min(fault.retry_after_seconds or 0, MAX_PAUSE_SECONDS))
    facts["check_due_at"] = now + timedelta(seconds=wait)
    return facts


def _detail_of(fault: Fault) -> str:
    status = f", HTTP {fault.http_status}" if fault.http_status else ""
    code = f", code {fault.code}" if fault.code is not None else ""
    return f"{fault.kind}{status}{code}: {fault.message}"
