"""A server that has just answered a read is not asked whether it is there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.db.models import Q
from django.utils import timezone

from connectors.actions import connect_connector, disconnect_connector, doubt_connection
from connectors.check_leases import claim_checks, spare_checks
from connectors.models import Check, Connector
from connectors.sessions import Fault, FaultKind, Listed
from connectors.tasks import check_connector, check_connectors, list_connectors, sweep_checks
from overview import counts
from overview.due import due_connectors
from overview.reads import CountTaken, ListingTaken
from overview.refresh import refresh
from tests.overview.factories import NOW, at, entry, listed, make_connector
from tests.overview.served import connect, read_due
from workspaces.actions import keep_watched
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db(transaction=True)

START = datetime(2026, 12, 1, 12, 0, tzinfo=UTC).timestamp()


@pytest.fixture
def outbound(acme):
    """Checked 30 s before NOW, and due again in 5 s."""
    times = {"checked_at": at(-30), "called_at": at(-30), "check_due_at": at(5)}
    return make_connector(acme, **times)


def came(connector, *taken, now=NOW):
    """What a read brought of the connector as it was then."""
    asked = {connector.pk: (connector.generation, connector.epoch)}
    counts.keep(taken, asked, owner="reader", now=now)


def due_at():
    return Connector.objects.get().check_due_at


@pytest.mark.requirement("D14")
@pytest.mark.parametrize("name", ["count", "listing"])
def test_what_a_server_answers_puts_its_next_check_off(outbound, name):
    if name == "count":
        came(outbound, CountTaken(outbound.pk, "drafts", 3))
    else:
        came(outbound, ListingTaken(outbound.pk, listed(entry()), True))
    assert at(30) <= due_at() <= at(36)
    assert Connector.objects.get().called_at == NOW
    # Also where somebody looks; and one that nobody reads any more is checked as ever.
    Workspace.objects.update(watched_until=at(100))
    assert not claim_checks([outbound.pk], at(29))
    assert claim_checks([outbound.pk], at(37))


@pytest.mark.parametrize(
    "facts",
    [
        {"attempt": 1},
        {"check_due_at": NOW},
        {"check_due_at": None},
        {"checked_at": at(-300)},
        {"called_at": at(-5)},
        {"connection": "failed"},
        {"sign_in_needed": True},
    ],
    ids=str,
)
def test_no_check_is_put_off_that_something_else_speaks_for(outbound, facts):
    Connector.objects.update(**facts)
    before = due_at()
    came(outbound, CountTaken(outbound.pk, "drafts", 3))
    assert due_at() == before


@pytest.mark.parametrize("act", [disconnect_connector, connect_connector])
def test_an_answer_of_an_earlier_generation_puts_nothing_off(outbound, act):
    act(outbound, by=None)
    before = due_at()
    came(outbound, CountTaken(outbound.pk, "drafts", 3))
    assert due_at() == before


def test_what_is_no_answer_puts_nothing_off(outbound):
    fault = Fault(FaultKind.TIMEOUT, "The server took longer than 5 s.")
    came(
        outbound,
        CountTaken(outbound.pk, "drafts", fault),
        ListingTaken(outbound.pk, fault, False),
    )
    unasked = Listed(entries=[], pages=0, cut_short=None)  # Of a server without resources.
    came(outbound, ListingTaken(outbound.pk, unasked, False))
    assert due_at() == at(5)


def test_a_check_that_nobody_waits_for_keeps_its_later_time(outbound):
    Connector.objects.update(check_due_at=at(200))
    came(outbound, CountTaken(outbound.pk, "drafts", 3))
    assert due_at() == at(200)


def test_answers_that_follow_each_other_cost_one_statement(outbound, django_assert_num_queries):
    came(outbound, CountTaken(outbound.pk, "drafts", 3))
    connector = Connector.objects.get()
    with django_assert_num_queries(0):
        spare_checks([connector], at(1))
    with django_assert_num_queries(1):
        spare_checks([connector], at(20))


@pytest.mark.requirement("D14")
def test_a_doubt_outlives_the_answers_that_were_still_on_their_way(acme, server):
    connector = connect(acme, server)
    Connector.objects.update(called_at=timezone.now() - timedelta(seconds=20))
    doubt_connection(connector.pk)
    read_due()
    assert claim_checks([connector.pk], timezone.now())


@pytest.mark.requirement("D14", "F-110")
def test_a_watched_server_is_read_and_checked_once_a_minute(acme, server, monkeypatch):
    for task in (check_connector, check_connectors):
        monkeypatch.setattr(task, "delay", task)
    monkeypatch.setattr(list_connectors, "delay", lambda _: None)
    with time_machine.travel(START, tick=True) as clock:
        connect(acme, server)
        for second in range(0, 600, 2):
            clock.move_to(datetime.fromtimestamp(START + second, UTC))
            keep_watched(acme)
            sweep_checks()
            refresh(due_connectors(Q(workspace=acme), timezone.now()))
        assert server.count("resources/read") == 10
        assert 9 <= Check.objects.count() <= 11
