"""One check of one connector, from its stored facts to its stored facts. The worker and the
command line share it."""

from __future__ import annotations

import time
from datetime import datetime

from django.conf import settings
from django.utils import timezone

from connectors.contact import record_contact
from connectors.errors import SecretUnreadable
from connectors.models import Connector
from connectors.probe import probe
from connectors.queries import targets_of
from connectors.runtime import run
from connectors.sessions import Connected, Fault, FaultKind, Target


def look_at(connector: Connector, now: datetime) -> Connected | Fault | None:
    """Look whether a connector's server answers, and store what that says of its connection.

    None, and nothing is stored, for one that nobody asked for or that misses a setting.
    """
    started = time.monotonic()
    outcome: Connected | Fault
    try:
        target = targets_of(Connector.objects.filter(pk=connector.pk), now).get(connector.pk)
        if target is None:
            return None
        outcome = _ask(target)
    except SecretUnreadable:
        outcome = Fault(FaultKind.CLOSED, "A stored secret cannot be decrypted: enter it again.")
    workspace = connector.workspace
    watched_until = workspace.watched_until if workspace else None
    record_contact(
        connector,
        outcome,
        latency_ms=round((time.monotonic() - started) * 1000),
        is_watched=watched_until is not None and watched_until > now,
        now=timezone.now(),
    )
    return outcome


def _ask(target: Target) -> Connected | Fault:
    return run(
        lambda sessions: probe(sessions, target, settings.CONNECT_SECONDS),
        settings.CONNECT_SECONDS * 2 + 5,
    )
