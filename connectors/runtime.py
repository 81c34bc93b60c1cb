"""This process's sessions with servers, bound to the settings, and the way to them from threads."""

from __future__ import annotations

import ipaddress
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from django.conf import settings
from django.db import connection

from connectors.protocol.identifiers import FACETS, RESOURCE_ARGUMENTS
from connectors.protocol.resource_arguments import Limits as ResourceLimits
from connectors.protocol.resource_arguments import capability
from connectors.sessions import Limits, Sessions, Target
from connectors.sessions.networks import is_public
from workspaces.background import background

T = TypeVar("T")

_lock = threading.Lock()
_sessions: Sessions | None = None


def sessions() -> Sessions:
    """The pool of this process, made when first used. It lives on the background loop."""
    global _sessions
    with _lock:
        if _sessions is None:
            _sessions = Sessions(limits(), claims=claims_of, is_allowed=is_allowed_address)
        return _sessions


def limits() -> Limits:
    """What one server may cost, by the settings."""
    return Limits(
        connect_seconds=settings.CONNECT_SECONDS,
        max_body_bytes=settings.CONNECTOR_MAX_BODY_BYTES,
        max_pages=settings.LISTING_MAX_PAGES,
        max_entries=settings.LISTING_MAX_ENTRIES,
        idle_seconds=settings.CONNECTION_IDLE_SECONDS,
    )


def run(work: Callable[[Sessions], Coroutine[Any, Any, T]], timeout_seconds: float) -> T:
    """Run a coroutine with the sessions, from a thread, and wait for it.

    The thread holds no database connection meanwhile: a few slow servers would empty the pool.
    Raises: TimeoutError, after cancelling it, when it takes longer.
    """
    if "pool" in connection.settings_dict["OPTIONS"] and not connection.in_atomic_block:
        connection.close()
    return background().run(work(sessions()), timeout_seconds)


def close_runtime() -> None:
    """Close every session of this process; called once, when it stops."""
    global _sessions
    with _lock:
        closing, _sessions = _sessions, None
    if closing is not None:
        background().run(closing.close(), 3)


def resource_limits() -> ResourceLimits:
    """The limits of resource arguments: the same numbers are advertised and enforced (R-004)."""
    return ResourceLimits(
        max_chars=settings.RESOURCE_ARGUMENTS_MAX_CHARS,
        max_size=settings.RESOURCE_ARGUMENTS_MAX_SIZE,
        max_uris=settings.RESOURCE_ARGUMENTS_MAX_URIS,
    )


def claims_of(target: Target) -> dict[str, dict[str, Any]]:
    """The extensions that the host claims on a connection (R-001 to R-005, F-001)."""
    claims: dict[str, dict[str, Any]] = {FACETS: {}}
    if not target.is_personal:
        claims[RESOURCE_ARGUMENTS] = dict(capability(resource_limits()))
    return claims


def is_allowed_address(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Whether connectors may reach it: public, or in a network that the operator allowed."""
    if any(address in network for network in settings.CONNECTOR_ALLOWED_NETWORKS):
        return True
    return is_public(address)
