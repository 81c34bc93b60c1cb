"""Requirements 4.3: each situation of a connector, from what happened to the row on the page."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from connectors.actions import (
    add_connector,
    cancel_connector,
    configure_connector,
    connect_connector,
    disconnect_connector,
    remove_connector,
)
from connectors.models import Connector, Secret
from connectors.oauth.acts import begin_sign_in
from connectors.protocol.facets import Level
from connectors.tasks import check_connector
from overview.models import StoredFacet
from overview.queries import panel_of
from overview.tasks import host_started
from tests.overview.served import DRAFTS, publish, read_due
from tests.servers.raw import Reply

pytestmark = pytest.mark.django_db(transaction=True)
KEY = [{"kind": "bearer", "name": "token", "title": "Token", "is_secret": True}]
COUNT = [("3", DRAFTS, Level.WARNING)]


def add(workspace, server, secrets=(), **fields):
    connector = Connector(
        workspace=workspace, slug="outbound", name="Outbound", url=server.url, **fields
    )
    return add_connector(connector, list(secrets), by=None)


def connect(connector):
    connect_connector(connector, by=None)
    check()


def check():
    for connector in Connector.objects.all():
        Connector.objects.update(check_due_at=timezone.now())
        check_connector(connector.pk)


def ready(workspace, server, **fields):
    """A connector whose facet is on the page."""
    connect(add(workspace, server, **fields))
    read_due()
    assert rows(workspace) == COUNT
    return Connector.objects.get()


def rows(workspace):
    return [(row.count, row.title, row.level) for row in panel_of(workspace, timezone.now()).rows]


def reads_of(server):
    """What the server is asked for facets from now on, if everything is due."""
    StoredFacet.objects.update(read_at=None, failed_at=None, lease_until=None)
    before = server.count("resources/list") + server.count("resources/read")
    read_due()
    return server.count("resources/list") + server.count("resources/read") - before


def sign_in(connector, user, minutes_ago=0):
    now = timezone.now() - timedelta(minutes=minutes_ago)
    begin_sign_in(connector, "state", "{}", by=user, now=now)


def status_row(title, level):
    return [(None, title, level)]


def added(acme, server, alice):
    add(acme, server)
    check()


def asked_without_its_secret(acme, server, alice):
    connect(add(acme, server, required=KEY))


def signing_in(acme, server, alice):
    sign_in(add(acme, server), alice)


def signing_in_while_it_works(acme, server, alice):
    sign_in(ready(acme, server), alice)


def abandoned_and_never_connected(acme, server, alice):
    sign_in(add(acme, server), alice, minutes_ago=16)


def abandoned_after_it_was_connected(acme, server, alice):
    connector = ready(acme, server)
    server.intercept = lambda _: Reply(500)
    check()
    sign_in(connector, alice, minutes_ago=16)


def restarted(acme, server, alice):
    ready(acme, server)
    host_started()


def refused(acme, server, alice):
    ready(acme, server, secrets=[Secret(kind="bearer", name="token", value="once-worked")])
    server.intercept = lambda _: Reply(401, {"www-authenticate": "Bearer"})
    check()


def unreachable(acme, server, alice):
    ready(acme, server)
    server.intercept = lambda _: Reply(502)
    check()
    check()


def disconnected(acme, server, alice):
    disconnect_connector(ready(acme, server), by=None)


def removed(acme, server, alice):
    remove_connector(ready(acme, server), by=None)


def secret_cleared(acme, server, alice):
    secrets = [Secret(kind="bearer", name="token", value="once-worked")]
    connector = ready(acme, server, secrets=secrets, required=KEY)
    configure_connector(connector, [], list(connector.secrets.all()), by=None)


@pytest.mark.parametrize(
    ("happens", "expected"),
    [
        pytest.param(added, [], marks=pytest.mark.requirement("S-001", "S-014")),
        pytest.param(
            asked_without_its_secret,
            status_row("Configuration required", Level.CRITICAL),
            marks=pytest.mark.requirement("S-002", "S-015"),
        ),
        pytest.param(
            signing_in,
            status_row("Connecting…", Level.INFO),
            marks=pytest.mark.requirement("S-003", "S-016"),
        ),
        pytest.param(
            signing_in_while_it_works,
            status_row("Connecting…", Level.INFO),
            marks=pytest.mark.requirement("S-003"),
        ),
        pytest.param(abandoned_and_never_connected, [], marks=pytest.mark.requirement("S-004")),
        pytest.param(
            abandoned_after_it_was_connected,
            status_row("Reconnection needed", Level.CRITICAL),
            marks=pytest.mark.requirement("S-005", "S-017"),
        ),
        pytest.param(
            restarted,
            status_row("Starting…", Level.INFO),
            marks=pytest.mark.requirement("S-006", "S-018"),
        ),
        pytest.param(
            refused,
            status_row("Reconnection needed", Level.CRITICAL),
            marks=pytest.mark.requirement("S-008", "S-017"),
        ),
        pytest.param(
            unreachable,
            status_row("Failed", Level.CRITICAL),
            marks=pytest.mark.requirement("S-009", "S-019"),
        ),
        pytest.param(disconnected, [], marks=pytest.mark.requirement("S-010", "S-014")),
        pytest.param(removed, [], marks=pytest.mark.requirement("S-012")),
        pytest.param(
            secret_cleared,
            status_row("Configuration required", Level.CRITICAL),
            marks=pytest.mark.requirement("S-013"),
        ),
    ],
)
def test_each_situation_but_ready_has_its_row_and_no_reads(acme, alice, server, happens, expected):
    happens(acme, server, alice)
    assert rows(acme) == expected
    assert reads_of(server) == 0
    assert rows(acme) == expected


def comes_back(happens):
    """What brings a connector back to ready after a situation."""
    return {
        signing_in_while_it_works: lambda pk: cancel_connector(
            Connector.objects.get(pk=pk), by=None
        ),
        restarted: check_connector,
    }[happens]


@pytest.mark.requirement("S-007", "S-020")
def test_a_ready_connector_has_its_facets_as_rows_and_they_are_read(acme, server):
    ready(acme, server)
    assert reads_of(server) == 1


@pytest.mark.requirement("F-145", "F-146", "F-168")
@pytest.mark.parametrize("happens", [signing_in_while_it_works, restarted])
def test_leaving_ready_and_coming_back_is_another_epoch_whatever_the_way(
    acme, alice, server, happens
):
    """So that hidden rows return and no count of before is shown."""
    happens(acme, server, alice)
    before = StoredFacet.objects.get().epoch
    comes_back(happens)(Connector.objects.get().pk)
    assert Connector.objects.get().connection == "ready"
    assert rows(acme) == []
    assert panel_of(acme, timezone.now()).checking == 1
    read_due()
    assert rows(acme) == COUNT
    assert StoredFacet.objects.get().epoch > before


@pytest.mark.requirement("S-003")
def test_a_check_that_succeeds_does_not_end_a_sign_in_under_way(acme, alice, server):
    signing_in_while_it_works(acme, server, alice)
    check()
    assert rows(acme) == status_row("Connecting…", Level.INFO)


@pytest.mark.requirement("S-009")
def test_an_abandoned_sign_in_is_forgotten_when_the_connector_proves_to_work(acme, alice, server):
    """Else the next outage would ask for a sign-in that nobody needs."""
    sign_in(ready(acme, server), alice, minutes_ago=16)
    check()
    server.intercept = lambda _: Reply(502)
    check()
    assert rows(acme) == status_row("Failed", Level.CRITICAL)


@pytest.mark.requirement("F-107", "F-146")
def test_a_connector_that_comes_back_without_a_facet_ends_the_checking_with_a_push(acme, server):
    publish(server)
    connect(add(acme, server))
    read_due()
    for outage in (lambda _: Reply(502), None):
        server.intercept = outage
        check()
    assert panel_of(acme, timezone.now()).checking == 1
    acme.refresh_from_db()
    before = acme.panel_version
    read_due()
    acme.refresh_from_db()
    assert acme.panel_version == before + 1
    assert panel_of(acme, timezone.now()).checking == 0
