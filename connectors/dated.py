"""What is known of a connection, fact by fact, each with its date.

A status says what to do. These say why to believe it: they come from different moments, and one of
them can be old while another one is new.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from connectors.models import Connector, Outcome, ToolCall, TraceEvent
from connectors.status import Connection


@dataclass(frozen=True, slots=True)
class Fact:
    """at: since when, or when last; None for what nobody knows yet. when: words before it."""

    name: str
    words: str
    at: datetime | None = None
    when: str = ""


def dated_facts(
    connector: Connector, *, is_credential_sent: bool, called_at: datetime | None
) -> list[Fact]:
    """Give the facts in the order of the way to a server.

    called_at: of the newest tool call, resource read or facet read that reached for the server.
    """
    return [
        _reachable(connector),
        _revision(connector),
        _credential(connector, is_sent=is_credential_sent),
        Fact("Last real call", "" if called_at else "none", called_at),
    ]


def _is_refused(connector: Connector) -> bool:
    return connector.credential_refused_at is not None or connector.sign_in_needed


def _reachable(connector: Connector) -> Fact:
    name, since = "Reachable", connector.connection_since
    match connector.connection:
        case Connection.READY:
            return Fact(name, "yes", since, when="since")
        case Connection.MOVED:
            return Fact(name, "at another address", since, when="since")
        case Connection.FAILED if _is_refused(connector):
            # Whoever refuses us is there.
            return Fact(name, "yes", connector.checked_at)
        case Connection.FAILED:
            return Fact(name, "no", since, when="since")
    return Fact(name, "not tried yet")


def _revision(connector: Connector) -> Fact:
    name = "Protocol revision"
    if not connector.revision:
        return Fact(name, "not known yet")
    # Its name is a date, too.
    return Fact(name, connector.revision, connector.called_at, when="last spoken")


def _credential(connector: Connector, *, is_sent: bool) -> Fact:
    name = "Credential"
    if connector.credential_refused_at is not None:
        return Fact(name, "refused", connector.credential_refused_at)
    if connector.sign_in_needed:
        words = "refused" if is_sent else "wanted by the server"
        return Fact(name, words, connector.checked_at)
    if not is_sent:
        return Fact(name, "none is sent")
    if connector.capabilities is None:
        # Of this credential: what an earlier one got says nothing.
        return Fact(name, "not tried yet")
    return Fact(name, "accepted", connector.called_at)


def last_call_at(connector: Connector, calls: list[ToolCall]) -> datetime | None:
    """When a tool call last went to a server, or a read of one of its resources.

    calls: its newest, as the page shows them anyway.
    """
    events = TraceEvent.objects.filter(server=connector).order_by("-pk")
    read_at = events.values_list("call__started_at", flat=True).first()
    called_at = (each.started_at for each in calls if each.outcome != Outcome.REFUSED)
    return max((at for at in (read_at, next(called_at, None)) if at), default=None)
