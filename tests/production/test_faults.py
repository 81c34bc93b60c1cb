"""The fault harness judges what people saw; these tests judge it."""

from __future__ import annotations

import pytest

from tests.faults.truth import STORED_SECONDS, Truth
from tests.servers.raw import RawServer


@pytest.mark.parametrize(
    ("count", "at", "is_right"),
    [
        ("1", 100.5, True),
        ("2", 100.5, False),
        # Read just before the change at 110, stored just after it.
        ("1", 110 + STORED_SECONDS - 0.1, True),
        ("1", 110 + STORED_SECONDS + 0.1, False),
        ("2", 109.9, False),
        ("2", 110.1, True),
        ("2", 500.0, True),
        ("1", 90.0, False),
    ],
)
def test_a_count_is_right_when_the_server_said_it_at_about_that_time(count, at, is_right):
    truth = Truth("server", RawServer())
    truth.history = [(100.0, "1"), (110.0, "2")]
    assert truth.may_have_said(count, at) is is_right
