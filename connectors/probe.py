"""Looking whether servers answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable

from connectors.arrivals import Arrivals
from connectors.contact import Contact
from connectors.sessions import Connected, Fault, FaultKind, Sessions, Target

QUICK_RETRY_SECONDS = 0.5
"""One quick second try tells a blip from an outage; the status changes only after it."""

_PASSING = frozenset(
    {FaultKind.UNREACHABLE, FaultKind.TIMEOUT, FaultKind.CLOSED, FaultKind.HTTP, FaultKind.PROTOCOL}
    | {FaultKind.PROXY}
)


async def probe(sessions: Sessions, target: Target, timeout_seconds: float) -> Connected | Fault:
    """Ask a server whether it is there, connecting first where needed; twice when it fails."""
    outcome = await sessions.ping(target, timeout_seconds)
    if isinstance(outcome, Fault) and outcome.kind in _PASSING:
        await asyncio.sleep(QUICK_RETRY_SECONDS)
        outcome = await sessions.ping(target, timeout_seconds)
    return outcome


class Probes(Arrivals[Contact]):
    """Probes of many servers under way."""

    def __init__(
        self, sessions: Sessions, targets: Iterable[Target], timeout_seconds: float
    ) -> None:
        super().__init__(
            (target.connector_id, self._probe(sessions, target, timeout_seconds))
            for target in targets
        )

    async def _probe(self, sessions: Sessions, target: Target, timeout_seconds: float) -> None:
        started = time.monotonic()
        outcome = await probe(sessions, target, timeout_seconds)
        latency_ms = round((time.monotonic() - started) * 1000)
        self.add(Contact(target.connector_id, target.generation, outcome, latency_ms))
