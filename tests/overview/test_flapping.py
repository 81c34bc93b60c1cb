"""D14: a server that comes and goes for five minutes, while somebody looks.

The clock is moved by two seconds at a time, and at each step everything runs that the sweeps would
queue. Only the pauses are imagined: server, sessions, checks and reads are real.
"""

from __future__ import annotations

import itertools
import threading
from datetime import UTC, datetime

import pytest
import time_machine
from django.db.models import Q
from django.utils import timezone

from connectors import probe
from connectors.models import Check, Connector
from connectors.tasks import check_connector, check_connectors, list_connectors, sweep_checks
from overview.due import due_connectors
from overview.queries import panel_of
from overview.refresh import refresh
from tests.overview.factories import entry
from tests.overview.served import connect, count, in_thread, publish, read_due, wait_until
from tests.servers.raw import Drop, Reply, forever
from workspaces.actions import keep_watched

pytestmark = pytest.mark.django_db(transaction=True)

START = datetime(2026, 12, 1, 12, 0, tzinfo=UTC).timestamp()
STEP_SECONDS = 2
UP_SECONDS = 15


@pytest.fixture
def inline(monkeypatch):
    """What is given to the broker is done at once, and a quick retry is quicker."""
    for task in (check_connector, check_connectors):
        monkeypatch.setattr(task, "delay", task)
    monkeypatch.setattr(list_connectors, "delay", lambda _: None)
    monkeypatch.setattr(probe, "QUICK_RETRY_SECONDS", 0.01)


def drop(_):
    raise Drop


@pytest.mark.requirement("D14")
@pytest.mark.parametrize("down", [drop, lambda _: Reply(503)])
def test_fifteen_seconds_up_and_fifteen_down_for_five_minutes(acme, server, inline, settings, down):
    settings.FACET_FRESH_SECONDS = 3  # So that each outage meets a call.
    with time_machine.travel(START, tick=True) as clock:
        connect(acme, server)
        keep_watched(acme)
        shown, versions, attempts = [], [], []
        for second in range(0, 300, STEP_SECONDS):
            clock.move_to(datetime.fromtimestamp(START + second, UTC))
            is_down = second // UP_SECONDS % 2 == 1
            server.intercept = down if is_down else None
            asked, checked = len(server.requests), Check.objects.count()
            sweep_checks()
            refresh(due_connectors(Q(workspace=acme), timezone.now()))
            keep_watched(acme)
            acme.refresh_from_db()
            connector = Connector.objects.get()
            shown.append((is_down, connector.connection, connector.connection_since))
            versions.append(acme.panel_version)
            attempts.append((Check.objects.count() - checked, len(server.requests) - asked))
    states = [state for _, state, _ in shown]
    changes = [i for i in range(1, len(states)) if states[i] != states[i - 1]]
    real = [i for i in range(1, len(shown)) if shown[i][0] != shown[i - 1][0]]
    assert set(states) == {"ready", "failed"}
    assert len(changes) <= len(real)
    # The first failed call turns it, in the very step.
    assert {states[i] for i, (is_down, *_) in enumerate(shown) if is_down and attempts[i][1]} == {
        "failed"
    }
    # What turned did so for good reason: red only while it was down, green only while it was up.
    assert [shown[i][0] for i in changes] == [states[i] == "failed" for i in changes]
    assert {shown[i][2] == shown[i - 1][2] for i in changes} == {False}
    steady = [i for i in range(1, len(shown)) if i not in changes]
    assert {shown[i][2] == shown[i - 1][2] for i in steady} == {True}
    # A retry that fails again is no news, and comes no sooner than 15 s after the one before.
    still_red = [i for i in steady if states[i] == states[i - 1] == "failed"]
    assert {versions[i] - versions[i - 1] for i in still_red} == {0}
    tries = [i for i in still_red if attempts[i] != (0, 0)]
    # One check; a dropped socket is dialled once more, by the check as by its quick retry.
    assert all(attempts[i][0] == 1 and attempts[i][1] <= 4 for i in tries)
    assert all(
        (later - earlier) * STEP_SECONDS >= UP_SECONDS - STEP_SECONDS
        for earlier, later in itertools.pairwise(tries)
    )


@pytest.mark.requirement("D14")
def test_a_lost_read_turns_the_row_red_while_its_sibling_still_hangs(
    acme, server, inline, settings
):
    settings.FACET_READ_TIMEOUT_SECONDS = 8
    publish(server, entry("hangs"), entry("breaks"))
    connect(acme, server)
    read_due()
    Connector.objects.get().facets.update(read_at=None)
    is_over = threading.Event()

    def breaking(request):
        if request.method == "resources/read" and "hangs" in request.params["uri"]:
            return forever()
        return drop(request)

    server.intercept = breaking

    def reads():
        read_due()
        is_over.set()

    reading = in_thread(reads)
    wait_until(lambda: Connector.objects.get().connection == "failed")
    assert not is_over.is_set()
    assert [row.title for row in panel_of(acme, timezone.now()).rows] == ["Failed"]
    server.hang_up()
    reading.join(10)


@pytest.mark.requirement("D14")
def test_a_read_that_fails_late_does_not_cut_the_pause_of_a_failed_connector_short(acme, server):
    from connectors.actions import doubt_connection

    connector = connect(acme, server)
    server.intercept = lambda _: Reply(503)
    Connector.objects.update(check_due_at=timezone.now())
    check_connector(connector.pk)
    due_at = Connector.objects.get().check_due_at
    doubt_connection(connector.pk)
    check_connector(connector.pk)
    assert Connector.objects.get().check_due_at == due_at > timezone.now()
    assert Connector.objects.get().attempt == 1


@pytest.mark.requirement("D14")
def test_a_slow_read_and_an_error_of_the_servers_own_cast_no_doubt(acme, server):
    connector = connect(acme, server)
    server.on("resources/read", lambda _: Reply(429))
    read_due()
    assert Connector.objects.get().check_due_at == connector.check_due_at
    server.on("resources/read", lambda _: count("three"))
    Connector.objects.get().facets.update(read_at=None, failed_at=None)
    read_due()
    assert Connector.objects.get().check_due_at == connector.check_due_at
