"""This process's sessions with servers, bound to the settings, and the way to them from threads."""

from __future__ import annotations

import asyncio
import concurrent.futures
import ipaddress
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from channels.db import database_sync_to_async
from django.conf import settings
from django.db import connection

from connectors.models import Connector
from connectors.protocol.identifiers import FACETS, RESOURCE_ARGUMENTS
from connectors.protocol.resource_arguments import Limits as ResourceLimits
from connectors.protocol.resource_arguments import capability
from connectors.sessions import Limits, Sessions, Target
from connectors.sessions.networks import is_public
from workspaces.background import background

logger = logging.getLogger(__name__)

T = TypeVar("T")

UNWANTED_SECONDS = 10
"""How long another process's disconnecting takes at most to reach this one's connections."""

_lock = threading.Lock()
_sessions: Sessions | None = None
_comparing: concurrent.futures.Future[None] | None = None


def sessions() -> Sessions:
    """The pool of this process, made when first used. It lives on the background loop."""
    global _sessions, _comparing
    with _lock:
        if _sessions is None:
            _sessions = Sessions(limits(), claims=claims_of, is_allowed=is_allowed_address)
            _comparing = background().submit(_compare(_sessions))
        return _sessions


async def _compare(held: Sessions) -> None:
    while True:
        await asyncio.sleep(UNWANTED_SECONDS)
        if not held.keys:
            continue
        try:
            await database_sync_to_async(end_unwanted, thread_sensitive=False)()
        except Exception:
            # Without the database nobody can have changed anything.
            logger.exception("Connections could not be compared with what is wanted")


def end_unwanted() -> None:
    """Have this process's connections closed that nobody wants any more, and wait for none.

    Those of a connector that is at rest or gone end at once, with what is under way on them;
    those of an earlier generation when nobody uses them.
    """
    with _lock:
        held = _sessions
    keys = held.keys if held is not None else []
    if held is None or not keys:
        return
    # All of them: naming those that are held would take longer than reading the rest.
    asked = Connector.objects.filter(asked_at__isnull=False)
    wanted = dict(asked.values_list("pk", "generation"))
    background().submit(_end(held, keys, wanted))


async def _end(held: Sessions, keys: list[tuple[int, int]], wanted: dict[int, int]) -> None:
    for connector_id, generation in keys:
        if generation < wanted.get(connector_id, generation):
            held.retire(connector_id, wanted[connector_id])
    # No later ones: since we asked, somebody may have connected it again.
    unwanted = {pk: generation for pk, generation in sorted(keys) if pk not in wanted}
    await asyncio.gather(*(held.drop(pk, newest + 1) for pk, newest in unwanted.items()))


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

    Raises: TimeoutError, after cancelling it, when it takes longer.
    """
    let_go_of_database()
    return background().run(work(sessions()), timeout_seconds)


def let_go_of_database() -> None:
    """Call before this thread waits for a server: a few slow ones would empty the pool."""
    if "pool" in connection.settings_dict["OPTIONS"] and not connection.in_atomic_block:
        connection.close()


def close_runtime() -> None:
    """Close every session of this process; called once, when it stops."""
    global _sessions, _comparing
    with _lock:
        closing, _sessions = _sessions, None
        comparing, _comparing = _comparing, None
    if comparing is not None:
        comparing.cancel()
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
