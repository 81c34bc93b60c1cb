from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from connectors.protocol.freshness import (
    Freshness,
    Policy,
    freshness_of,
    retry_delay_seconds,
)

NOW = datetime(2026, 10, 1, 12, tzinfo=UTC)
POLICY = Policy()


def ago(seconds: float | None) -> datetime | None:
    return None if seconds is None else NOW - timedelta(seconds=seconds)


@pytest.mark.requirement("F-110", "F-111", "F-112", "F-113")
@pytest.mark.parametrize(
    ("age", "freshness"),
    [
        (None, Freshness.NEVER),
        (0, Freshness.FRESH),
        (59.999, Freshness.FRESH),
        (60, Freshness.STALE),
        (600, Freshness.STALE),
        (600.001, Freshness.EXPIRED),
        (10**9, Freshness.EXPIRED),
    ],
)
def test_a_count_is_fresh_then_stale_then_expired(age, freshness):
    assert freshness_of(ago(age), NOW, POLICY) is freshness


@pytest.mark.parametrize(("age", "freshness"), [(-2, Freshness.FRESH), (-3600, Freshness.EXPIRED)])
def test_a_count_from_the_future_is_trusted_no_longer_than_one_from_the_past(age, freshness):
    assert freshness_of(ago(age), NOW, POLICY) is freshness


@pytest.mark.requirement("D14")
def test_retries_wait_from_15_seconds_to_5_minutes_doubling_in_between():
    longest = [retry_delay_seconds(attempt, lambda: 1.0) for attempt in range(1, 8)]
    assert longest == [30, 60, 120, 240, 300, 300, 300]
    assert [retry_delay_seconds(attempt, lambda: 0.0) for attempt in (1, 4, 10**9)] == [15, 15, 15]
