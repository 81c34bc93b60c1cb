"""A connector's status: derived from stored facts whenever it is asked for, never stored.

Pure. Source: Facets, "Your connector is not connected in the workspace"; requirements section 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from connectors.protocol.facets import Level

SIGN_IN_LASTS: Final = timedelta(minutes=15)


class Status(StrEnum):
    """What a connector is waiting for, if anything."""

    AT_REST = "at_rest"
    CONFIGURATION_REQUIRED = "configuration_required"
    CONNECTING = "connecting"
    RECONNECTION_NEEDED = "reconnection_needed"
    STARTING = "starting"
    FAILED = "failed"
    READY = "ready"


class Connection(StrEnum):
    """How the last attempt to reach the server stands.

    starting: the first attempt since the start or since a change runs. A retry after a failure
    stays failed until it succeeds, so that a retry is no change of status.
    moved: the server answers that it is at another address, which only an admin can enter.
    """

    IDLE = "idle"
    STARTING = "starting"
    READY = "ready"
    FAILED = "failed"
    MOVED = "moved"


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known about a connector. Times are aware; None means that it is not so."""

    asked_at: datetime | None
    """Since when somebody has wanted it connected."""
    missing: tuple[str, ...] = ()
    """Required settings without a value."""
    sign_in_started_at: datetime | None = None
    credential_refused_at: datetime | None = None
    sign_in_needed: bool = False
    ever_ready: bool = False
    connection: Connection = Connection.IDLE


class Action(StrEnum):
    """What people can do to a connector."""

    CONNECT = "connect"
    RECONNECT = "reconnect"
    CONFIGURE = "configure"
    SIGN_IN = "sign_in"
    CANCEL = "cancel"
    CHECK = "check"
    DISCONNECT = "disconnect"
    REMOVE = "remove"


_LABELS: Final = {
    Status.AT_REST: "Not connected",
    Status.CONFIGURATION_REQUIRED: "Configuration required",
    Status.CONNECTING: "Connecting…",
    Status.RECONNECTION_NEEDED: "Reconnection needed",
    Status.STARTING: "Starting…",
    Status.FAILED: "Failed",
    Status.READY: "Ready",
}

_LEVELS: Final = {
    Status.CONFIGURATION_REQUIRED: Level.CRITICAL,
    Status.RECONNECTION_NEEDED: Level.CRITICAL,
    Status.FAILED: Level.CRITICAL,
    Status.CONNECTING: Level.INFO,
    Status.STARTING: Level.INFO,
}

_ALWAYS: Final = frozenset({Action.CONFIGURE, Action.REMOVE})
_WANTED: Final = _ALWAYS | {Action.DISCONNECT}
_ALLOWED: Final = {
    Status.AT_REST: _ALWAYS | {Action.CONNECT},
    Status.CONFIGURATION_REQUIRED: _WANTED,
    # Again: whoever began the sign-in may have lost its window.
    Status.CONNECTING: _WANTED | {Action.CANCEL, Action.SIGN_IN},
    Status.RECONNECTION_NEEDED: _WANTED | {Action.RECONNECT, Action.SIGN_IN},
    Status.STARTING: _WANTED | {Action.CANCEL},
    Status.FAILED: _WANTED | {Action.RECONNECT, Action.SIGN_IN},
    Status.READY: _WANTED | {Action.CHECK, Action.SIGN_IN},
}


def status_of(facts: Facts, now: datetime) -> Status:
    """Derive the status; the first condition that holds wins.

    A sign-in that nobody finished in 15 minutes is over: it puts a connector that never worked
    back at rest, and one that did in need of a reconnection unless it still works.
    """
    if facts.asked_at is None:
        return Status.AT_REST
    if facts.missing:
        return Status.CONFIGURATION_REQUIRED
    started = facts.sign_in_started_at
    is_abandoned = started is not None and now - started >= SIGN_IN_LASTS
    if started is not None and not is_abandoned:
        return Status.CONNECTING
    if is_abandoned and not facts.ever_ready:
        return Status.AT_REST
    if facts.credential_refused_at is not None or facts.sign_in_needed:
        return Status.RECONNECTION_NEEDED
    if is_abandoned and facts.connection is not Connection.READY:
        return Status.RECONNECTION_NEEDED
    match facts.connection:
        case Connection.READY:
            return Status.READY
        case Connection.FAILED:
            return Status.FAILED
        case Connection.MOVED:
            return Status.CONFIGURATION_REQUIRED
        case Connection.IDLE | Connection.STARTING:
            return Status.STARTING


def label_of(status: Status) -> str:
    """Give the words that people read."""
    return _LABELS[status]


def level_of(status: Status) -> Level | None:
    """Give the level of the status row on the overview; None if the status has no row."""
    return _LEVELS.get(status)


def allowed(status: Status, action: Action) -> bool:
    """Say whether an action makes sense in a status, whoever asks for it."""
    return action in _ALLOWED[status]


def needs_admin(action: Action) -> bool:
    """Say whether only a workspace admin may do it. Checking is for every member."""
    return action is not Action.CHECK
