"""A short run of the fault harness, and whether the harness judges rightly what people saw."""

from __future__ import annotations

import pytest

from tests.faults.harness import Run
from tests.faults.outages import LIVE_SECONDS, RECONNECTED_SECONDS, Outage, Outages, Refusal
from tests.faults.truth import STORED_SECONDS, Truth
from tests.servers.raw import RawServer

# One of each kind. With this seed the server is cut first: its next try comes as the others follow.
FAULTS = ("kill worker1", "crash postgres", "kill web1", "kill valkey", "cut server0")
SEED = 9


def test_everything_that_broke_for_a_moment_is_right_again(tmp_path):
    said = []
    run = Run(SEED, len(FAULTS), FAULTS, haste=3, say=said.append)
    assert run.run(tmp_path) == [], "\n".join(said)


@pytest.mark.parametrize(
    ("why", "asked_at", "is_explained"),
    [
        ("no answer", 105, False),
        ("HTTP 500", 99.5, False),
        ("HTTP 500", 105, True),
        ("HTTP 500", 120 + LIVE_SECONDS - 1, True),
        ("HTTP 500", 120 + LIVE_SECONDS + 1, False),
        ("The host could not answer.", 105, True),
        ("rate_limited", 105, False),
    ],
)
def test_only_what_a_request_needs_explains_that_it_was_refused(why, asked_at, is_explained):
    outages = Outages([Outage("stop postgres", 100, 120)])
    causes, unexplained = outages.explain([Refusal(why, asked_at, asked_at + 0.1)])
    assert (bool(causes), bool(unexplained)) == (is_explained, not is_explained)


def test_a_server_that_was_cut_waits_for_its_next_try():
    outage = Outage("cut server0", 100, 101)
    late = 101 + RECONNECTED_SECONDS
    assert outage.explains(Refusal("not ready", late - 1, late - 1))
    assert not outage.explains(Refusal("not ready", late + 1, late + 1))
    assert not outage.explains(Refusal("HTTP 500", 100.5, 100.6))


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
