"""How long readings of real servers may take, and what an outage that comes and goes costs."""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack

import pytest
from django.utils import timezone

from connectors.models import Check, Connector, Listing
from connectors.runtime import close_runtime
from connectors.tasks import check_connector
from overview.queries import panel_of
from tests.overview.factories import entry
from tests.overview.served import DRAFTS, FACETED, connect, publish, read_due, shown
from tests.servers.raw import LEGACY, Reply, forever, raw_server

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.requirement("F-131", "F-130")
@pytest.mark.parametrize(("seconds", "state"), [(0.6, "ok"), (1.2, "unavailable")])
def test_the_time_of_a_read_covers_the_connection_that_it_needs(acme, settings, seconds, state):
    settings.FACET_READ_TIMEOUT_SECONDS = 2
    with raw_server(revisions=(LEGACY,), capabilities=FACETED) as server:
        publish(server, entry())
        connect(acme, server)
        read_due()
        close_runtime()  # As in another worker, or after a restart of this one.
        Connector.objects.get().facets.update(read_at=None)

        async def slowly(request):
            if request.method in ("initialize", "resources/read"):
                await asyncio.sleep(seconds)

        server.intercept = slowly
        started = time.monotonic()
        read_due()
        assert time.monotonic() - started < 2.9
    assert [row.state for row in panel_of(acme, timezone.now()).rows] == [state]


@pytest.mark.requirement("F-134", "F-039")
def test_five_silent_servers_of_ten_facets_take_about_one_timeout(acme, server):
    names = [f"facet-{number}" for number in range(10)]
    with ExitStack() as stack:
        connect(acme, server, "good")
        for number in range(5):
            silent = stack.enter_context(raw_server(capabilities=FACETED))
            publish(silent, *(entry(name) for name in names))
            silent.on("resources/read", lambda _: forever())
            connect(acme, silent, f"silent-{number}")
        started = time.monotonic()
        read_due()
        assert time.monotonic() - started < 4
    found = shown(acme)
    assert found.count(("3", DRAFTS, "ok")) == 1
    assert [state for _, _, state in found].count("unavailable") == 50


@pytest.mark.requirement("D14")
def test_a_server_that_comes_and_goes_changes_the_panel_once_each_way_and_is_not_stormed(
    acme, server
):
    connector = connect(acme, server)
    read_due()
    versions = []
    for number in range(6):
        is_down = number % 2 == 0
        server.intercept = (lambda _: Reply(503)) if is_down else None
        acme.refresh_from_db()
        before, asked = acme.panel_version, len(server.requests)
        Connector.objects.update(check_due_at=timezone.now())
        for _ in range(5):  # What sweeps every two seconds queue: the pause is not over.
            check_connector(connector.pk)
        acme.refresh_from_db()
        versions.append(acme.panel_version - before)
        # One attempt, with its one quick retry while the server is down.
        assert len(server.requests) - asked <= 2
        if is_down:
            assert shown(acme) == [(None, "Failed", "failed")]
            Connector.objects.update(check_due_at=timezone.now())
            check_connector(connector.pk)
            acme.refresh_from_db()
            assert acme.panel_version - before == 1
    assert versions == [1] * 6
    read_due()
    assert shown(acme) == [("3", DRAFTS, "ok")]


@pytest.mark.requirement("D14")
def test_a_failed_read_has_the_connection_looked_at_at_once(acme, server):
    """So that the row turns with the first failed call, not with the next round of checks."""
    connector = connect(acme, server)
    read_due()
    due_before = Connector.objects.get().check_due_at
    assert due_before is not None and due_before > timezone.now()
    Connector.objects.get().facets.update(read_at=None)
    server.intercept = lambda _: Reply(401)
    read_due()
    due = Connector.objects.get().check_due_at
    assert due is not None and due <= timezone.now()
    check_connector(connector.pk)
    assert [each.title for each in panel_of(acme, timezone.now()).rows] == ["Reconnection needed"]
    assert Check.objects.filter(is_ok=False).count() == 1


@pytest.mark.requirement("F-110", "F-052")
def test_a_new_listing_reads_what_is_new_and_no_count_that_is_fresh(acme, server):
    connect(acme, server)
    read_due()
    publish(server, entry(), entry("tasks"))
    Listing.objects.update(taken_at=None)
    read_due()
    assert server.count("resources/list") == 2
    uris = [request.params["uri"] for request in server.seen("resources/read")]
    assert uris == ["acme://facets/drafts", "acme://facets/tasks"]
    assert len(shown(acme)) == 2


@pytest.mark.requirement("D14", "S-009")
def test_one_blip_is_no_outage(acme, server):
    connector = connect(acme, server)
    acme.refresh_from_db()
    before, blips = acme.panel_version, iter([Reply(502)])
    server.intercept = lambda _: next(blips, None)
    Connector.objects.update(check_due_at=timezone.now())
    check_connector(connector.pk)
    assert Connector.objects.get().connection == "ready"
    acme.refresh_from_db()
    assert acme.panel_version == before
