"""What is queued for whom: only what somebody looks at, and never at a page's cost."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.db import transaction
from django.utils import timezone
from kombu.exceptions import OperationalError

from connectors.actions import connect_connector
from connectors.check_leases import claim_checks
from connectors.contact import Contact, record_contacts
from connectors.models import Connector
from connectors.sessions import Fault, FaultKind
from connectors.tasks import check_connector, check_connectors, forget_old, sweep_checks
from overview.tasks import GROUP_SIZE, refresh_connectors, refresh_workspace, sweep_facets, watch
from tests.overview.factories import make_connector
from workspaces.models import Workspace
from workspaces.push import panel_changed

pytestmark = pytest.mark.django_db(transaction=True)


class Queue:
    """In place of a task's way to the broker: what was queued, or nothing while it is away."""

    def __init__(self, monkeypatch, task):
        self.queued: list[object] = []
        self.is_away = False
        monkeypatch.setattr(task, "delay", self._delay)

    def _delay(self, argument):
        if self.is_away:
            raise OperationalError("no broker")
        self.queued.append(argument)


@pytest.fixture
def reads(monkeypatch):
    return Queue(monkeypatch, refresh_connectors)


@pytest.fixture
def openings(monkeypatch):
    return Queue(monkeypatch, refresh_workspace)


@pytest.fixture
def checks(monkeypatch):
    return Queue(monkeypatch, check_connectors)


@pytest.fixture
def wanted_checks(monkeypatch):
    return Queue(monkeypatch, check_connector)


def look_at(workspace, seconds=60):
    until = timezone.now() + timedelta(seconds=seconds)
    Workspace.objects.filter(pk=workspace.pk).update(watched_until=until)


def test_only_a_workspace_that_somebody_looks_at_is_read(acme, other, reads):
    ours = make_connector(acme)
    make_connector(other)
    sweep_facets()
    assert reads.queued == []
    look_at(acme)
    look_at(other, seconds=-1)
    sweep_facets()
    assert reads.queued == [[ours.pk]]


def test_what_was_only_just_opened_is_read_though_no_sweep_has_seen_it(acme, other, reads):
    ours = make_connector(acme)
    make_connector(other)
    refresh_workspace(acme.pk)
    assert reads.queued == [[ours.pk]]


def test_many_connectors_are_read_in_groups_and_each_once(acme, reads):
    ids = {make_connector(acme, f"server-{number}").pk for number in range(GROUP_SIZE + 1)}
    refresh_workspace(acme.pk)
    assert [len(each) for each in reads.queued] == [GROUP_SIZE, 1]
    assert {pk for each in reads.queued for pk in each} == ids


def test_an_open_page_keeps_its_workspace_watched_and_queues_its_first_reading_once(acme, openings):
    watch(Workspace.objects.get())
    watch(Workspace.objects.get())
    assert openings.queued == [acme.pk]
    # Each tick of its socket comes before the last one's time is over.
    Workspace.objects.update(watched_until=timezone.now() + timedelta(seconds=35))
    watch(Workspace.objects.get())
    watched_until = Workspace.objects.get().watched_until
    assert watched_until is not None
    assert watched_until > timezone.now() + timedelta(seconds=60)
    assert openings.queued == [acme.pk]


@pytest.mark.parametrize("path", ["", "panel/", "attention.json", "connectors/outbound/"])
def test_without_a_broker_a_page_still_shows_what_is_stored(
    path, acme, bob_client, openings, reads
):
    make_connector(acme)
    openings.is_away = True
    assert bob_client.get(f"/w/acme/{path}").status_code == 200


def test_without_a_broker_what_people_ask_for_is_done_and_found_by_the_next_sweep(
    acme, checks, wanted_checks
):
    connector = make_connector(acme)
    wanted_checks.is_away = True
    connect_connector(connector, by=None)
    assert Connector.objects.get().connection == "starting"
    sweep_checks()
    assert checks.queued == [[connector.pk]]


def test_only_what_is_due_and_asked_for_is_checked_and_sooner_while_it_is_watched(acme, checks):
    now = timezone.now()
    ready = make_connector(acme, check_due_at=now + timedelta(minutes=4))
    make_connector(acme, "resting", asked_at=None, check_due_at=now)
    sweep_checks()
    assert checks.queued == []
    Connector.objects.update(called_at=now - timedelta(seconds=40))
    look_at(acme)
    sweep_checks()
    assert checks.queued == [[ready.pk]]
    assert claim_checks([ready.pk], now)
    assert not claim_checks([ready.pk], now)


def test_servers_that_did_not_answer_are_checked_last_and_apart_from_those_that_did(
    acme, checks, monkeypatch
):
    monkeypatch.setattr("connectors.tasks.GROUP_SIZE", 2)
    now = timezone.now()
    ids = [
        make_connector(acme, f"server-{n}", attempt=attempt, check_due_at=now).pk
        for n, attempt in enumerate([1, 0, 3, 0])
    ]
    sweep_checks()
    assert checks.queued == [[ids[1], ids[3]], [ids[0], ids[2]]]


def test_a_server_that_asked_for_a_pause_has_it_also_while_somebody_looks(acme, checks):
    now = timezone.now()
    connector = make_connector(acme)
    limited = Fault(FaultKind.RATE_LIMITED, "Too many requests.", retry_after_seconds=600)
    contact = Contact(connector.pk, connector.generation, limited)
    record_contacts([contact], now - timedelta(seconds=60))
    look_at(acme)
    sweep_checks()
    assert checks.queued == []


def test_a_clock_that_was_set_back_stops_no_checks(acme, checks):
    now = timezone.now()
    make_connector(acme, check_due_at=now + timedelta(hours=3), connection="failed")
    make_connector(acme, "leased", check_due_at=now, check_lease_until=now + timedelta(hours=1))
    sweep_checks()
    assert [len(each) for each in checks.queued] == [2]


def test_a_change_of_a_workspace_that_goes_with_it_is_told_to_nobody(acme):
    with transaction.atomic():
        panel_changed(acme.pk)
        Workspace.objects.all().delete()


def test_sessions_that_have_ended_are_forgotten_and_no_others(bob_client, alice_client):
    ended, kept = bob_client.session.session_key, alice_client.session.session_key
    Session.objects.filter(pk=ended).update(expire_date=timezone.now())
    forget_old()
    assert list(Session.objects.values_list("pk", flat=True)) == [kept]
