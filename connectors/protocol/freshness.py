"""How long a count may be shown, and how soon a server is tried again.

Pure: the clock and the randomness are parameters; every time is an aware datetime.
Source: Facets, "What the host does".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

FIRST_RETRY_SECONDS: Final = 15.0
LAST_RETRY_SECONDS: Final = 300.0


@dataclass(frozen=True, slots=True)
class Policy:
    """The times of the specification, and after a failure our own."""

    fresh_seconds: float = 60
    max_age_seconds: float = 600
    retry_seconds: float = 15
    listing_seconds: float = 300
    listing_retry_seconds: float = 60


class Freshness(StrEnum):
    """What may be done with the last count of a facet."""

    FRESH = "fresh"
    """Shown, and not read again."""
    STALE = "stale"
    """Shown, while one new read runs."""
    EXPIRED = "expired"
    """Not shown any more."""
    NEVER = "never"
    """Nothing was ever read."""


def freshness_of(read_at: datetime | None, now: datetime, policy: Policy) -> Freshness:
    """Judge a count by its age. read_at: when the read that gave it ended, None if none did."""
    if read_at is None:
        return Freshness.NEVER
    age_seconds = _age_seconds(read_at, now)
    if age_seconds < policy.fresh_seconds:
        return Freshness.FRESH
    if age_seconds <= policy.max_age_seconds:
        return Freshness.STALE
    return Freshness.EXPIRED


def retry_delay_seconds(attempt: int, random: Callable[[], float]) -> float:
    """Give the wait before the next attempt to connect, 15 s to 5 min.

    attempt: failed attempts in a row, 1 or more. random: gives 0 up to, not including, 1.
    The jitter spans everything above the floor: full jitter down to 0 would let a server that
    flaps be tried without a pause.
    """
    # Six doublings pass the ceiling; more would only build a giant number.
    ceiling = min(LAST_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2.0 ** min(attempt, 6))
    return FIRST_RETRY_SECONDS + random() * (ceiling - FIRST_RETRY_SECONDS)


def _age_seconds(then: datetime, now: datetime) -> float:
    # A time far in the future (a clock was set back) is as little trusted as one far in the past.
    return abs((now - then).total_seconds())
