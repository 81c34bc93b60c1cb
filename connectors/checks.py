"""Checks of connectors, from their stored facts to their stored facts. The worker and the command
line share them."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from datetime import datetime

from django.conf import settings
from django.utils import timezone

from connectors.arrivals import stored_apart, windows_of
from connectors.check_leases import give_up_checks
from connectors.contact import Contact, record_contacts
from connectors.models import Connector
from connectors.probe import Probes
from connectors.queries import readable_targets
from connectors.sessions import Connected, Fault, FaultKind

_UNREADABLE = Fault(FaultKind.CLOSED, "A stored secret cannot be decrypted: enter it again.")


def look_at(connector: Connector, now: datetime) -> Connected | Fault | None:
    """Look whether a connector's server answers, and store what that says of its connection.

    None, and nothing is stored, for one that nobody asked for or that misses a setting.
    """
    windows = list(look_at_all({connector.pk: connector.generation}, now))
    return next((each.outcome for window in windows for each in window), None)


def look_at_all(generations: dict[int, int], now: datetime) -> Generator[list[Contact], None, None]:
    """Ask the servers of some connectors at once; store what comes as it comes, and give it.

    generations: by connector id. One that misses a setting waits until an admin has filled it in;
    one whose secret no key can read has failed, alone.
    """
    targets, unreadable = readable_targets(Connector.objects.filter(pk__in=generations), now)
    lacking = generations.keys() - targets.keys() - unreadable
    give_up_checks({pk: generations[pk] for pk in lacking})
    if unreadable:
        yield _stored([Contact(pk, generations[pk], _UNREADABLE) for pk in unreadable])
    if not targets:
        return
    seconds = settings.CONNECT_SECONDS
    asking = windows_of(lambda to: Probes(to, targets.values(), seconds), seconds * 2 + 5)
    with closing(asking) as windows:
        for came in windows:
            yield _stored(came)


def _stored(contacts: list[Contact]) -> list[Contact]:
    return stored_apart(lambda some: record_contacts(some, timezone.now()), contacts)
