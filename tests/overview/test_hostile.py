"""What one server or one connector does wrong costs neither a page nor another connector."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from django.db import connection
from django.db.models import F
from django.utils import timezone

from connectors.models import Connector, Listing, Secret
from connectors.protocol.facets import Facet, Level
from connectors.protocol.identifiers import FACETS
from connectors.sessions import Target
from connectors.tasks import check_connector
from overview.models import StoredFacet
from overview.queries import panel_of
from overview.reads import Asked, CountTaken, Reads
from tests.overview.factories import entry
from tests.overview.served import DRAFTS, FACETED, connect, count, publish, read_due, shown
from tests.servers.raw import Reply, answer, forever, raw_server

pytestmark = pytest.mark.django_db(transaction=True)
GOOD = ("3", DRAFTS, "ok")


@pytest.fixture
def good(server):
    return server


@pytest.fixture
def bad():
    with raw_server(capabilities=FACETED) as server:
        publish(server)
        yield server


def nested(depth):
    """JSON text, for `json.dumps` itself may not reach so deep."""
    return b'{"a":' * depth + b"1" + b"}" * depth


def with_nested(request, result, depth):
    """The answer with a result, in which "NESTED" stands for what is nested so deep."""
    return Reply(body=answer(request, result).replace(b'"NESTED"', nested(depth)))


DEPTHS = [100, 300, 500, 700, 800, 850, 900, 930, 960, 990, 1100, 5000]


@pytest.mark.requirement("F-035", "F-079")
@pytest.mark.parametrize("depth", DEPTHS)
def test_an_entry_that_is_nested_deep_harms_no_other_connector(acme, good, bad, depth):
    odd = {**entry("odd"), "extra": "NESTED"}
    bad.on("resources/list", lambda request: with_nested(request, {"resources": [odd]}, depth))
    connect(acme, bad, "bad")
    connect(acme, good, "good")
    read_due()
    assert GOOD in shown(acme)
    assert panel_of(acme, timezone.now()).checking == 0


@pytest.mark.requirement("F-009")
@pytest.mark.parametrize("depth", DEPTHS)
def test_capabilities_that_are_nested_deep_leave_no_connector_starting(acme, bad, depth):
    bad.capabilities = {**FACETED, "extensions": {FACETS: {"future": "NESTED"}}}
    ordinary = bad._handshake
    bad.on("server/discover", None)
    bad.intercept = lambda request: (
        with_nested(request, ordinary(request), depth)
        if request.method == "server/discover"
        else None
    )
    assert connect(acme, bad, "bad").connection in ("ready", "failed")


@pytest.mark.requirement("F-011")
def test_a_server_without_the_resources_capability_is_not_asked_for_any(acme, bad, good, caplog):
    bad.capabilities = {"extensions": {FACETS: {}}}
    connect(acme, bad, "bad")
    connect(acme, good, "good")
    read_due()
    assert (bad.count("resources/list"), bad.count("resources/read")) == (0, 0)
    assert shown(acme) == [GOOD]
    assert panel_of(acme, timezone.now()).checking == 0
    assert "A server advertises facets but no resources" in caplog.messages


@pytest.mark.requirement("F-026", "F-027", "F-028", "F-029", "F-032", "F-024")
def test_each_skipped_entry_is_logged_once_with_server_uri_and_reason(acme, bad, caplog):
    publish(
        bad,
        entry("untitled", title=None),
        entry("plain", mimeType="text/plain"),
        {**entry("nameless"), "name": " "},
        entry("twice"),
        entry("twice", uri="acme://again"),
        entry("ordinary", _meta={FACETS: True}),
    )
    connector = connect(acme, bad, "bad")
    for _ in range(2):
        Listing.objects.update(taken_at=None)
        read_due()
    lines = [each for each in caplog.records if each.message == "A marked resource is no facet"]
    assert {line.connector for line in lines} == {connector.pk}
    assert [line.uri for line in lines] == [
        "acme://facets/untitled",
        "acme://facets/plain",
        "acme://facets/nameless",
        "acme://again",
    ]
    assert all(line.reason for line in lines)


@pytest.mark.requirement("F-057")
def test_a_listing_that_keeps_failing_is_logged_once(acme, bad, caplog):
    bad.on("resources/list", lambda _: Reply(500))
    connect(acme, bad, "bad")
    for _ in range(2):
        Listing.objects.update(failed_at=None)
        read_due()
    assert caplog.messages.count("Facets could not be listed") == 1


def test_a_secret_that_no_key_reads_costs_its_own_connector_alone(acme, bad, good):
    publish(bad, entry("bad"))
    connector = connect(acme, bad, "bad")
    connect(acme, good, "good")
    Secret.objects.create(connector=connector, kind="bearer", name="token", value="x" * 20)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE connectors_secret SET value = %s", [b"of another key"])
    read_due()
    assert GOOD in shown(acme)
    check_connector(connector.pk)
    assert Connector.objects.get(pk=connector.pk).connection == "failed"


@pytest.mark.requirement("F-147")
def test_the_answer_for_a_connector_that_changed_meanwhile_is_dropped_and_asked_for_anew(
    acme, server
):
    def change(request):
        Connector.objects.update(epoch=F("epoch") + 1)
        connection.close()
        server.on("resources/read", count(4))
        return count(3)

    connect(acme, server, "good")
    server.on("resources/read", change)
    read_due()
    assert shown(acme) == []
    read_due()
    assert shown(acme) == [("4", DRAFTS, "ok")]


def test_an_error_of_ours_with_one_server_costs_the_others_nothing(caplog):
    class Sessions:
        async def read_resource(self, target, uri, timeout):
            if target.connector_id == 1:
                raise RuntimeError("a bug")
            return count(3)

    async def outcomes():
        facets = (Facet("drafts", "acme://x", "T", Level.INFO),)
        sessions: Any = Sessions()
        asked = [Asked(Target(pk, 1, "http://127.0.0.1:9/"), facets) for pk in (1, 2)]
        reads = Reads(sessions, asked, 2)
        taken = []
        while came := await reads.next(0.01):
            taken += came
        return [each.outcome for each in taken if isinstance(each, CountTaken)]

    assert asyncio.run(outcomes()) == [3]
    assert "Asking a server failed" in caplog.messages


@pytest.mark.requirement("F-132", "F-131")
def test_a_listing_that_hangs_ends_in_its_time_and_delays_no_other_server(acme, bad, good):
    bad.on("resources/list", lambda _: forever())
    connect(acme, bad, "bad")
    connect(acme, good, "good")
    started = time.monotonic()
    read_due()
    assert 1.5 < time.monotonic() - started < 3.5
    assert shown(acme) == [GOOD]
    assert "2 s" in Listing.objects.get(connector__slug="bad", kind="resources").failure


@pytest.mark.requirement("F-037", "F-039", "F-122")
def test_five_thousand_facets_with_long_names_are_listed_and_read(acme, bad):
    names = [f"{number}-{'x' * (10_000 if number < 200 else 10)}" for number in range(5000)]
    publish(bad, *(entry(name, title="T") for name in names))
    connect(acme, bad, "bad")
    read_due()
    assert StoredFacet.objects.count() == 5000
    assert ("3", "T", "ok") in shown(acme)
    # One more in front moves every other one; the last one is past the bound of a listing.
    publish(bad, entry("first", title="First"), *(entry(name, title="T") for name in names))
    Listing.objects.update(taken_at=None)
    read_due()
    stored = StoredFacet.objects.order_by("position").values_list("title", "position")
    assert (len(stored), stored[0], stored[4999]) == (5000, ("First", 0), ("T", 4999))
    assert Listing.objects.get(kind="resources").cut_short
