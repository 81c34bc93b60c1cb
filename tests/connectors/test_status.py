from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from connectors.protocol.facets import Level
from connectors.status import (
    Action,
    Connection,
    Facts,
    Status,
    allowed,
    label_of,
    level_of,
    needs_admin,
    status_of,
)

NOW = datetime(2026, 10, 1, 12, tzinfo=UTC)
EARLIER = NOW - timedelta(days=1)
ABANDONED = NOW - timedelta(minutes=16)
JUST_NOW = NOW - timedelta(minutes=14, seconds=59)
READY = Facts(EARLIER, ever_ready=True, connection=Connection.READY)


@pytest.mark.requirement("F-140", "F-141", "F-142", "F-143", "F-144", "F-145", "F-146")
@pytest.mark.parametrize(
    ("facts", "status"),
    [
        (Facts(None), Status.AT_REST),
        (Facts(None, missing=("token",)), Status.AT_REST),
        (Facts(EARLIER, missing=("token",)), Status.CONFIGURATION_REQUIRED),
        (Facts(EARLIER, sign_in_started_at=JUST_NOW), Status.CONNECTING),
        (Facts(EARLIER, sign_in_started_at=ABANDONED), Status.AT_REST),
        (Facts(EARLIER, sign_in_started_at=ABANDONED, sign_in_needed=True), Status.AT_REST),
        (
            Facts(EARLIER, sign_in_started_at=ABANDONED, ever_ready=True),
            Status.RECONNECTION_NEEDED,
        ),
        (Facts(EARLIER, connection=Connection.IDLE), Status.STARTING),
        (Facts(EARLIER, connection=Connection.STARTING, ever_ready=True), Status.STARTING),
        (READY, Status.READY),
        (replace(READY, sign_in_started_at=ABANDONED), Status.READY),
        (replace(READY, credential_refused_at=EARLIER), Status.RECONNECTION_NEEDED),
        (replace(READY, sign_in_needed=True), Status.RECONNECTION_NEEDED),
        (replace(READY, connection=Connection.FAILED), Status.FAILED),
        (replace(READY, asked_at=None), Status.AT_REST),
        (replace(READY, asked_at=None, credential_refused_at=EARLIER), Status.AT_REST),
        (replace(READY, missing=("token",)), Status.CONFIGURATION_REQUIRED),
    ],
)
def test_facts_give_one_status(facts, status):
    assert status_of(facts, NOW) is status


def test_a_sign_in_is_abandoned_after_exactly_15_minutes():
    facts = Facts(EARLIER, sign_in_started_at=NOW - timedelta(minutes=15))
    assert status_of(facts, NOW) is Status.AT_REST
    assert status_of(facts, NOW - timedelta(microseconds=1)) is Status.CONNECTING


@pytest.mark.requirement("F-140", "F-141", "F-142", "F-143", "F-144")
@pytest.mark.parametrize(
    ("status", "label", "level"),
    [
        (Status.AT_REST, "Not connected", None),
        (Status.CONFIGURATION_REQUIRED, "Configuration required", Level.CRITICAL),
        (Status.CONNECTING, "Connecting…", Level.INFO),
        (Status.RECONNECTION_NEEDED, "Reconnection needed", Level.CRITICAL),
        (Status.STARTING, "Starting…", Level.INFO),
        (Status.FAILED, "Failed", Level.CRITICAL),
        (Status.READY, "Ready", None),
    ],
)
def test_each_status_has_its_words_and_the_level_of_its_row(status, label, level):
    assert (label_of(status), level_of(status)) == (label, level)


@pytest.mark.parametrize(
    ("action", "statuses"),
    [
        (Action.CONNECT, {Status.AT_REST}),
        (Action.RECONNECT, {Status.RECONNECTION_NEEDED, Status.FAILED}),
        (Action.CANCEL, {Status.CONNECTING, Status.STARTING}),
        (
            Action.SIGN_IN,
            {Status.CONNECTING, Status.RECONNECTION_NEEDED, Status.FAILED, Status.READY},
        ),
        (Action.CHECK, {Status.READY}),
        (Action.DISCONNECT, set(Status) - {Status.AT_REST}),
        (Action.CONFIGURE, set(Status)),
        (Action.REMOVE, set(Status)),
    ],
)
def test_each_action_is_allowed_where_it_makes_sense(action, statuses):
    assert {status for status in Status if allowed(status, action)} == statuses


def test_only_a_check_is_for_every_member():
    assert [action for action in Action if not needs_admin(action)] == [Action.CHECK]
