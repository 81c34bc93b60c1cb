"""Checks of connectors, from their stored facts to their stored facts. The worker and the command
line share them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime

from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.utils import timezone

from connectors.arrivals import windows_of
from connectors.check_leases import give_up_checks
from connectors.contact import Contact, record_contacts
from connectors.models import Connector
from connectors.probe import Probes
from connectors.queries import readable_targets
from connectors.sessions import Connected, Fault, FaultKind

logger = logging.getLogger(__name__)

_UNREADABLE = Fault(FaultKind.CLOSED, "A stored secret cannot be decrypted: enter it again.")


def look_at(connector: Connector, now: datetime) -> Connected | Fault | None:
    """Look whether a connector's server answers, and store what that says of its connection.

    None, and nothing is stored, for one that nobody asked for or that misses a setting.
    """
    windows = list(look_at_all({connector.pk: connector.generation}, now))
    return next((each.outcome for window in windows for each in window), None)


def look_at_all(generations: dict[int, int], now: datetime) -> Iterator[list[Contact]]:
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
    """Store them together. After an error of ours each by itself, so that it costs the connector
    alone that it is about: the lease of its check is the pause before the next one."""
    try:
        record_contacts(contacts, timezone.now())
    except (OperationalError, InterfaceError):
        raise  # The database is away, for all of them.
    except Exception:
        if len(contacts) > 1:
            return [each for contact in contacts for each in _stored([contact])]
        extra = {"action": "check_not_stored", "connector": contacts[0].connector_id}
        logger.exception("A check could not be stored", extra=extra)
        return []
    return contacts
