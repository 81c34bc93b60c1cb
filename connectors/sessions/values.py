"""The plain values that cross between sessions and the rest of the host. Pure: no I/O, no SDK."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """What one server may cost us. Every bound holds while bytes arrive, not afterwards."""

    connect_seconds: float = 10
    """Dialling plus the whole handshake, silence on the probe included."""

    max_body_bytes: int = 12 * MIB
    """Decoded bytes of one answer, and of all pages of one listing together."""

    max_pages: int = 50
    max_entries: int = 5000
    max_redirects: int = 3
    max_concurrent: int = 20
    """Requests of one connection that are on the wire at once; further ones wait."""

    idle_seconds: float = 300
    """A connection that nobody used for this long is closed."""

    keepalive_seconds: float = 4
    """Below the 5 s after which common servers close an idle socket."""

    silence_seconds: float = 60
    """A subscription that says nothing for this long is lost; servers ping every 15 s."""

    loss_window_seconds: float = 60
    """A second lost session within this time is reported, not repaired."""

    close_seconds: float = 2
    """The farewell to a server: ending its session, or waiting for a child process to leave."""


class Authorization(Protocol):
    """The Authorization header of a connection, where it changes while the connection lives.

    Called on the loop of the sessions, by many requests at once.
    """

    async def value(self, refused: str | None = None) -> str | Fault:
        """What to send now. refused: the value that the server has just answered with 401.

        Gives another one than that, or says why there is none. Never raises.
        """
        ...

    async def lacks(self, scope: str) -> None:
        """Hear that the server wants a scope that the credential does not have."""
        ...


@dataclass(frozen=True, slots=True)
class Target:
    """Where and as whom to connect. `generation` changes with the credential, so never reuse one.

    url: an absolute http(s) URL; unused when `command` is given.
    headers: sent on every request; their values are secrets and never appear in a message.
    authorization: gives the Authorization header instead of `headers`, anew for each request.
    discovery: `Connected.discovery` of an earlier connection: connects without any request.
    ca_bundle: certificates in PEM of authorities that are trusted for this server besides the
    usual ones.
    is_of_2025: open with `initialize`, as a host of that era, whatever else the server speaks.
    command, environment: a stdio server from the operator's own list. The child sees
    PATH, HOME and the like plus `environment`, nothing else of ours.
    """

    connector_id: int
    generation: int
    url: str = field(repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    is_personal: bool = False
    discovery: str | None = field(default=None, repr=False)
    ca_bundle: str = field(default="", repr=False)
    is_of_2025: bool = False
    command: tuple[str, ...] | None = None
    environment: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    authorization: Authorization | None = field(default=None, repr=False, compare=False)

    @property
    def key(self) -> tuple[int, int]:
        return (self.connector_id, self.generation)


@dataclass(frozen=True, slots=True)
class Connected:
    """What the server said of itself, untrusted.

    capabilities: as sent, entry by entry: a value may be of any type.
    discovery: to persist and give back in `Target.discovery`; None on a 2025-era connection.
    """

    revision: str
    server_name: str
    server_version: str
    capabilities: dict[str, object]
    discovery: str | None = field(default=None, repr=False)


class FaultKind(StrEnum):
    """Why a call has no result. Code matches on these, people read `Fault.message`."""

    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    RATE_LIMITED = "rate_limited"
    HTTP = "http"
    SESSION_LOST = "session_lost"
    TOO_LARGE = "too_large"
    PROTOCOL = "protocol"
    REMOTE = "remote"
    """The server answered with a JSON-RPC error: it is alive, and this call failed."""
    REDIRECT = "redirect"
    BLOCKED = "blocked"
    PROXY = "proxy"
    """The operator's own outgoing proxy opened no way to the server."""
    CLOSED = "closed"


_OF_CONNECTION = frozenset(
    {FaultKind.UNREACHABLE, FaultKind.UNAUTHORIZED, FaultKind.HTTP, FaultKind.SESSION_LOST}
    | {FaultKind.REDIRECT, FaultKind.BLOCKED, FaultKind.CLOSED, FaultKind.PROXY}
)


@dataclass(frozen=True, slots=True)
class Fault:
    """An expected bad outcome.

    message: one line for people. Peer text in it is cut short, stripped and free of our secrets.
    code, data: of a JSON-RPC error. challenge: the WWW-Authenticate header of a 401 or 403.
    """

    kind: FaultKind
    message: str
    code: int | None = None
    http_status: int | None = None
    retry_after_seconds: float | None = None
    challenge: str | None = None
    data: object = field(default=None, repr=False)

    @property
    def is_of_connection(self) -> bool:
        """Whether the connection itself is in doubt, and not only this call: a timeout or a rate
        limit says nothing of it (requirements 4.1)."""
        return self.kind in _OF_CONNECTION


@dataclass(frozen=True, slots=True)
class Listed:
    """All pages of one listing, entries raw and in the server's order.

    cut_short: why the rest was not read, in words; None when the listing is whole.
    unreadable: entries left out because they hold text that is no Unicode or a number without end.
    """

    entries: list[object]
    pages: int
    cut_short: str | None = None
    unreadable: int = 0
