"""Listings of many servers at once: what they share, and what one of them costs the others."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from functools import partial

import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from connectors import listing_reads, listings, queries
from connectors.models import Connector, Listing, Secret
from connectors.queries import target_to
from connectors.runtime import close_runtime, run
from connectors.sessions import Sessions
from connectors.tasks import GROUP_SIZE, list_connectors, queue_listings
from tests.connectors.outside import install
from tests.connectors.records import secret
from tests.overview.served import in_thread, wait_until
from tests.servers.raw import Error, raw_server

pytestmark = pytest.mark.django_db(transaction=True)

TOOLS = [{"name": "send", "inputSchema": {"type": "object"}}]


@pytest.fixture
def servers(queued):
    with raw_server() as one, raw_server() as another:
        for server in (one, another):
            lists(server, TOOLS)
        yield one, another
        close_runtime()


@pytest.fixture
def group(acme, servers):
    """The ids of two ready connectors whose listings are due, "one" and "another"."""
    slugs = zip(("one", "another"), servers, strict=True)
    return [install(acme, slug, server.url).pk for slug, server in slugs]


def lists(server, tools):
    server.on("tools/list", {"tools": tools})
    server.on("resources/templates/list", {"resourceTemplates": []})


def tools():
    rows = Listing.objects.filter(kind="tools", taken_at__isnull=False)
    return dict(rows.values_list("connector__slug", "entries"))


def make_due():
    Listing.objects.update(taken_at=timezone.now() - timedelta(hours=1))


def test_a_slow_server_delays_no_other_of_its_group(group, servers):
    slow, _ = servers
    is_over = threading.Event()

    async def late(_):
        await asyncio.to_thread(is_over.wait, 8)

    slow.intercept = late
    listing = in_thread(lambda: list_connectors(group))
    wait_until(lambda: tools() == {"another": TOOLS})
    assert listing.is_alive()
    is_over.set()
    listing.join(10)
    assert tools() == {"one": TOOLS, "another": TOOLS}


def test_only_so_many_listings_of_a_group_are_under_way_at_once(acme, servers):
    under_way: list[int] = []
    counts: list[int] = []
    is_full = threading.Event()

    async def held(request):
        under_way.append(1)
        counts.append(len(under_way))
        if len(under_way) == listing_reads.AT_ONCE:
            is_full.set()
        await asyncio.to_thread(is_full.wait, 8)
        await asyncio.sleep(0.05)
        under_way.pop()

    ids = [install(acme, f"server-{n}", servers[0].url).pk for n in range(listing_reads.AT_ONCE)]
    for target in [target_to(each) for each in Connector.objects.filter(pk__in=ids)]:
        run(partial(Sessions.connect, target=target, timeout=5), 9)
    servers[0].intercept = held
    list_connectors(ids)
    assert max(counts) == listing_reads.AT_ONCE and len(counts) == 2 * len(ids)
    assert len(tools()) == len(ids)


def test_a_server_that_refuses_keeps_what_it_listed_and_costs_itself(group, servers):
    list_connectors(group)
    make_due()
    servers[0].on("tools/list", lambda _: Error(-32000, "no"))
    lists(servers[1], [])
    list_connectors(group)
    assert tools() == {"one": TOOLS, "another": []}
    assert Listing.objects.get(connector__slug="one", kind="tools").failed_at is not None


def test_a_secret_that_no_key_can_read_costs_its_own_connector_alone(group):
    Secret.objects.create(connector_id=group[0], kind=secret().kind, name="token", value="x")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE connectors_secret SET value = %s", [b"unreadable"])
    list_connectors(group)
    assert tools() == {"another": TOOLS}


def test_an_error_of_ours_with_one_of_a_group_costs_that_one_its_listings(
    group, monkeypatch, caplog
):
    real = listings.store

    def broken(came, **more):
        if group[0] in {connector_id for connector_id, _ in came}:
            raise RuntimeError("a bug")
        return real(came, **more)

    monkeypatch.setattr(listings, "store", broken)
    list_connectors(group)
    assert tools() == {"another": TOOLS}
    assert {record.connector for record in caplog.records if record.exc_info} == {group[0]}


def test_one_that_has_just_left_ready_is_listed_at_once_when_it_is_back(
    group, servers, monkeypatch
):
    real = queries.readable_targets

    def late(connectors, now):
        Connector.objects.filter(pk=group[0]).update(connection="failed")
        return real(connectors, now)

    monkeypatch.setattr(listing_reads, "readable_targets", late)
    list_connectors(group)
    assert tools() == {"another": TOOLS}
    monkeypatch.setattr(listing_reads, "readable_targets", real)
    Connector.objects.update(connection="ready")
    list_connectors(group)
    assert tools() == {"one": TOOLS, "another": TOOLS}


def test_one_that_is_connected_anew_while_it_is_listed_is_listed_once_more(group, servers, queued):
    def connected_anew(_):
        Connector.objects.filter(pk=group[0]).update(epoch=F("epoch") + 1)
        return {"tools": TOOLS}

    servers[0].on("tools/list", connected_anew)
    list_connectors(group)
    assert queued == [("list_connectors", [group[0]])]
    servers[0].on("tools/list", {"tools": []})
    list_connectors(group)
    assert tools() == {"one": [], "another": TOOLS}
    assert len(queued) == 1


def test_a_server_that_fails_is_not_listed_again_without_a_pause(group, servers, queued, settings):
    settings.FACET_LISTING_RETRY_SECONDS = 0

    def connected_anew_and_failed(_):
        Connector.objects.filter(pk=group[0]).update(epoch=F("epoch") + 1)
        return Error(-32000, "no")

    servers[0].on("tools/list", connected_anew_and_failed)
    servers[0].on("resources/templates/list", lambda _: Error(-32000, "no"))
    list_connectors(group)
    assert queued == []


@pytest.mark.parametrize(
    "changed",
    [
        [],
        [*TOOLS, TOOLS[0] | {"name": "draft"}],
        [TOOLS[0] | {"annotations": {"readOnlyHint": 1}}],
        [dict(reversed(TOOLS[0].items()))],
    ],
)
def test_whatever_changes_in_a_listing_is_stored(group, servers, changed):
    lists(servers[0], [TOOLS[0] | {"annotations": {"readOnlyHint": True}}])
    list_connectors(group)
    make_due()
    lists(servers[0], changed)
    list_connectors(group)
    assert str(tools()["one"]) == str(changed)
    assert tools()["another"] == TOOLS


def test_what_has_not_changed_is_young_again_and_not_written_again(group):
    list_connectors(group)
    make_due()
    now = timezone.now()
    with CaptureQueriesContext(connection) as captured:
        list_connectors(group)
    assert not [each for each in captured if '"entries" =' in each["sql"]]
    ours = Listing.objects.filter(kind__in=["tools", "templates"])
    assert {each.taken_at >= now and not each.lease_owner for each in ours} == {True}


def test_a_larger_group_costs_no_more_statements(acme, servers):
    def statements(number):
        ids = [install(acme, f"server-{number}-{n}", servers[0].url).pk for n in range(number)]
        list_connectors(ids)
        make_due()
        with CaptureQueriesContext(connection) as captured:
            list_connectors(ids)
        return len(captured)

    # Answers that come in another window are stored by statements of their own.
    assert statements(10) <= statements(2) + 8 < 40


def test_a_large_workspace_is_queued_in_groups(acme, queued):
    ids = [install(acme, f"server-{n}").pk for n in range(GROUP_SIZE + 1)]
    queue_listings(ids, timezone.now())
    assert [len(asked) for _, asked in queued] == [GROUP_SIZE, 1]
    assert sorted(pk for _, asked in queued for pk in asked) == sorted(ids)
