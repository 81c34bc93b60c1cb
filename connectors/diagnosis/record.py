"""The steps of one walk as they are made: each timed, bounded, and free of secrets."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from connectors.diagnosis.advice import advice_on
from connectors.diagnosis.values import Finding, Outcome, Step
from connectors.sessions import Fault, FaultKind, Limits, Target
from connectors.sessions.faults import Peer
from connectors.sessions.guard import IsAllowed

T = TypeVar("T")

SLACK = 0.5
"""Seconds by which a session's own deadline comes before ours: its words say more."""

MAX_TEXT = 1_000
MAX_FINDINGS = 20
"""Of one step. A server with thousands of bad entries is broken in a few ways only."""


@dataclass(frozen=True, slots=True)
class Terms:
    """How to walk. The times are those that the host itself works with.

    has_connector: whether there is a stored connector, where advice can be followed.
    is_both_eras: ask a server of the modern era once more as a host of 2025 does.
    """

    limits: Limits
    claims: Callable[[Target], dict[str, dict[str, Any]]]
    is_allowed: IsAllowed
    read_seconds: float
    total_seconds: float = 30
    has_connector: bool = True
    is_both_eras: bool = False


class Record:
    """What is left when the time of the terms is over is not looked at."""

    def __init__(self, peer: Peer, terms: Terms) -> None:
        self.peer = peer
        self.steps: list[Step] = []
        self.is_reached = False
        self.has_connector = terms.has_connector
        self._ends_at = time.monotonic() + terms.total_seconds

    async def timed(self, work: Awaitable[T], seconds: float) -> tuple[T | Fault, float]:
        """What the work gives, or a Fault when it takes longer than this or than what is left."""
        started = time.monotonic()
        left = max(0.0, min(seconds, self._ends_at - started))
        outcome: T | Fault
        try:
            async with asyncio.timeout(left):
                outcome = await work
        except TimeoutError:
            words = f"It was not over after {left:.3g} s."
            if not left:
                words = "Not looked at: the time of the whole diagnosis was used up."
            outcome = Fault(FaultKind.TIMEOUT, words)
        return outcome, time.monotonic() - started

    def saw(
        self, name: str, words: str, seconds: float | None = None, found: Iterable[Finding] = ()
    ) -> None:
        """A step that was made: as good as the worst that it found."""
        findings = list(found)
        outcome = Outcome.NOTE if findings else Outcome.OK
        if any(each.is_failure for each in findings):
            outcome = Outcome.FAILED
        self._add(name, words, outcome, seconds, findings)

    def failed(
        self, name: str, fault: Fault, seconds: float | None = None, *instead: Finding
    ) -> None:
        """A step that came to nothing, with what that means. instead: of the usual advice."""
        words = fault.message
        if fault.kind is FaultKind.REMOTE:
            words = f"The server answers with an error: {words}"
        self._add(name, words, Outcome.FAILED, seconds, list(instead) or [self.advice_on(fault)])

    def advice_on(self, fault: Fault) -> Finding:
        return advice_on(fault, has_connector=self.has_connector, is_reached=self.is_reached)

    def skipped(self, name: str, why: str) -> None:
        self._add(name, why, Outcome.SKIPPED, None, [])

    def _add(
        self,
        name: str,
        words: str,
        outcome: Outcome,
        seconds: float | None,
        findings: list[Finding],
    ) -> None:
        shown = [
            Finding(self._fit(each.words), each.fixer, each.is_failure)
            for each in findings[:MAX_FINDINGS]
        ]
        if more := len(findings) - len(shown):
            shown.append(Finding(f"And {more} more.", None, is_failure=False))
        self.steps.append(Step(self._fit(name), self._fit(words), outcome, seconds, tuple(shown)))

    def _fit(self, text: str) -> str:
        return self.peer.text(text, MAX_TEXT)
