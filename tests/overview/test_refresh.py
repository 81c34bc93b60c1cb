"""Facets from a real server to the panel: both eras, tolerant, bounded, shared, private.

Each test connects a connector to a server of tests/servers, runs what the worker runs, and looks
at what a member would see.
"""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta

import pytest
from django.utils import timezone

from connectors.models import Connector, Listing
from connectors.protocol.identifiers import FACETS
from connectors.tasks import check_connector
from overview import counts
from overview.models import StoredFacet
from tests.overview.factories import entry
from tests.overview.served import (
    DRAFTS,
    FACETED,
    connect,
    count,
    in_thread,
    publish,
    read_due,
    shown,
    text,
    wait_until,
)
from tests.servers.raw import (
    LEGACY,
    MODERN,
    Drop,
    Error,
    Reply,
    answer,
    event,
    forever,
    raw_server,
    stream,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.requirement("F-001", "F-004")
def test_the_facets_of_a_2025_server_that_advertises_in_initialize_are_shown(acme):
    with raw_server(revisions=(LEGACY,), capabilities=FACETED) as server:
        publish(server, entry())
        connect(acme, server)
        read_due()
        claimed = server.seen("initialize")[0].params["capabilities"]["extensions"]
    assert shown(acme) == [("3", DRAFTS, "ok")]
    assert claimed[FACETS] == {}


@pytest.mark.requirement("F-002", "F-003", "F-005")
def test_the_facets_of_a_2026_server_are_shown_and_every_request_claims_the_extension(acme):
    with raw_server(revisions=(MODERN, LEGACY), capabilities=FACETED) as server:
        publish(server, entry())
        connector = connect(acme, server)
        read_due()
        assert connector.revision == MODERN
        assert server.count("initialize") == 0
        for request in server.seen("server/discover") + server.seen("resources/read"):
            capabilities = request.params["_meta"]["io.modelcontextprotocol/clientCapabilities"]
            assert capabilities["extensions"][FACETS] == {}
    assert shown(acme) == [("3", DRAFTS, "ok")]


@pytest.mark.requirement("F-006", "F-007", "F-008", "F-010")
@pytest.mark.parametrize(
    "capabilities",
    [
        {"resources": {}},
        {"resources": {}, "extensions": {FACETS: None}},
        {"resources": {}, "extensions": {FACETS: True}},
        {"resources": {}, "extensions": {FACETS: []}},
        {"resources": {}, "extensions": {FACETS.upper(): {}}},
        {"resources": {}, "extensions": {FACETS + "-v2": {}}},
        {"resources": {}, "experimental": {FACETS: {}}},
    ],
)
@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_a_server_that_does_not_advertise_is_ready_and_neither_listed_nor_read(
    acme, capabilities, revision
):
    with raw_server(revisions=(revision,), capabilities=capabilities) as server:
        publish(server, entry())
        assert connect(acme, server).connection == "ready"
        read_due()
        read_due()
        assert server.count("resources/list") == server.count("resources/read") == 0
    assert shown(acme) == []


@pytest.mark.requirement("F-009")
def test_unknown_settings_of_the_extension_do_not_matter(acme):
    capabilities = {"resources": {}, "extensions": {FACETS: {"future": [1]}}}
    with raw_server(capabilities=capabilities) as server:
        publish(server, entry())
        connect(acme, server)
        read_due()
    assert shown(acme) == [("3", DRAFTS, "ok")]


@pytest.mark.requirement("F-011")
def test_a_server_that_advertises_without_resources_has_no_rows_and_harms_nobody(acme, server):
    with raw_server(capabilities={"extensions": {FACETS: {}}}) as empty:
        connect(acme, empty, "empty")
        connect(acme, server)
        read_due()
    assert shown(acme) == [("3", DRAFTS, "ok")]


@pytest.mark.requirement("F-012")
def test_rows_disappear_at_once_when_a_server_no_longer_advertises(acme, server):
    connector = connect(acme, server)
    read_due()
    server.capabilities = {"resources": {}}
    acme.refresh_from_db()
    before = acme.panel_version
    Connector.objects.update(check_due_at=timezone.now())
    check_connector(connector.pk)
    assert shown(acme) == []
    acme.refresh_from_db()
    assert acme.panel_version == before + 1


@pytest.mark.requirement("D5", "F-035", "F-026", "F-028")
def test_each_bad_entry_costs_itself_and_its_reason_is_kept(acme, server):
    publish(
        server,
        entry("good"),
        {**entry("plain"), "_meta": None},
        {**entry("noted"), "annotations": None},
        entry("untitled", title=None),
        entry("charset", mimeType="Application/JSON; charset=utf-8"),
        entry("odd", _meta={FACETS: {"level": "urgent", "future": 1}}),
        7,
        {"uri": "acme://broken", "name": 5, "_meta": {FACETS: {}}},
    )
    connect(acme, server)
    read_due()
    assert [title.split()[0] for _, title, _ in shown(acme)] == ["Good", "Noted", "Odd"]
    skipped = Listing.objects.get(kind="resources").skipped
    reasons = {each["name"]: each["reason"] for each in skipped}
    assert reasons["untitled"] == "title is missing or not text"
    assert reasons["charset"].startswith("mimeType must be exactly application/json")
    assert len(skipped) == 4


@pytest.mark.requirement("D4", "F-036")
def test_a_facet_on_the_last_page_is_found_and_an_empty_cursor_is_a_cursor(acme, server):
    pages = {None: ([], ""), "": ([], "b"), "b": ([entry()], None)}

    def page(request):
        entries, cursor = pages[request.params.get("cursor")]
        return {"resources": entries} | ({"nextCursor": cursor} if cursor is not None else {})

    server.on("resources/list", page)
    connect(acme, server)
    read_due()
    assert shown(acme) == [("3", DRAFTS, "ok")]


@pytest.mark.requirement("D4", "F-037")
def test_a_listing_without_end_is_cut_short_used_and_said(acme, server):
    server.on("resources/list", {"resources": [entry()], "nextCursor": "again"})
    connect(acme, server)
    read_due()
    assert shown(acme) == [("3", DRAFTS, "ok")]
    assert Listing.objects.get(kind="resources").cut_short


@pytest.mark.requirement("F-038")
def test_a_listing_whose_second_page_fails_counts_as_failed(acme, server):
    def page(request):
        if "cursor" in request.params:
            return Error(-32603, "out of order")
        return {"resources": [entry()], "nextCursor": "2"}

    server.on("resources/list", page)
    connect(acme, server)
    read_due()
    assert shown(acme) == []
    assert "out of order" in Listing.objects.get(kind="resources").failure


@pytest.mark.requirement("F-030", "F-087")
def test_a_read_carries_the_exact_uri_and_nothing_about_people(acme, alice, server):
    uri = "Odd+scheme:not a//uri?%zz#é📬"
    publish(server, entry(uri=uri))
    connect(acme, server)
    read_due()
    (request,) = server.seen("resources/read")
    assert {*request.params} == {"uri", "_meta"}
    assert request.params["uri"] == uri
    said = json.dumps(request.message) + json.dumps(request.headers)
    for word in ("alice", "acme", "Acme", "session", "traceparent"):
        assert word not in said.replace(uri, "")


@pytest.mark.requirement("D7", "F-095", "F-096", "F-130", "F-134")
def test_a_slow_facet_is_unavailable_in_its_time_and_delays_no_sibling(acme, server):
    names = ["a", "b", "c", "d", "slow"]
    publish(server, *(entry(name) for name in names))

    async def read(request):
        return await forever() if request.params["uri"].endswith("slow") else count(3)

    server.on("resources/read", read)
    connect(acme, server)
    reading = in_thread(read_due)
    wait_until(lambda: len(shown(acme)) == 4)
    assert reading.is_alive()
    reading.join(10)
    assert shown(acme)[-1] == (None, "Slow awaiting review", "unavailable")
    assert "2 s" in StoredFacet.objects.get(position=4).failure


@pytest.mark.requirement("D7", "F-117", "F-059")
def test_readers_in_many_threads_share_one_listing_and_one_read(acme, server):
    async def slowly(request):
        await asyncio.sleep(0.2)
        return count(3)

    server.on("resources/read", slowly)
    connect(acme, server)
    readers = [in_thread(read_due) for _ in range(8)]
    for reader in readers:
        reader.join(20)
    assert (server.count("resources/list"), server.count("resources/read")) == (1, 1)
    assert shown(acme) == [("3", DRAFTS, "ok")]


def test_an_error_of_ours_with_one_of_a_group_costs_that_one_alone_and_pauses_it(
    acme, server, monkeypatch, caplog
):
    one, another = connect(acme, server, "one"), connect(acme, server, "another")
    real = counts.keep

    def broken(taken, asked, **more):
        if one.pk in {each.connector_id for each in taken}:
            raise RuntimeError("a bug")
        real(taken, asked, **more)

    monkeypatch.setattr(counts, "keep", broken)
    read_due()
    assert shown(acme) == [("3", DRAFTS, "ok")]
    assert {record.connector for record in caplog.records if record.exc_info} == {one.pk}
    leased = Listing.objects.exclude(lease_owner="").values_list("connector_id", "kind")
    assert list(leased) == [(one.pk, "resources")]
    read_due()
    assert server.count("resources/list") == 2
    assert StoredFacet.objects.get().connector_id == another.pk


@pytest.mark.requirement("F-121", "F-060")
def test_a_servers_own_time_to_live_does_not_keep_a_count_from_being_read_again(acme, server):
    server.on("resources/read", {**count(3), "ttlMs": 3_600_000})
    connect(acme, server)
    read_due()
    StoredFacet.objects.update(read_at=timezone.now() - timedelta(seconds=60))
    server.on("resources/read", {**count(4), "ttlMs": 3_600_000})
    read_due()
    assert shown(acme) == [("4", DRAFTS, "ok")]


@pytest.mark.requirement("F-039")
def test_two_hundred_facets_of_one_server_are_all_shown(acme, server):
    publish(server, *(entry(f"facet-{number}") for number in range(200)))
    connect(acme, server)
    read_due()
    assert len(shown(acme)) == 200


@pytest.mark.requirement("D13", "F-079")
def test_a_giant_answer_is_refused_and_the_connection_serves_others(acme, server, settings):
    settings.CONNECTOR_MAX_BODY_BYTES = 1_000_000
    publish(server, entry("giant"), entry("good"))

    def read(request):
        is_giant = request.params["uri"].endswith("giant")
        return text('{"count": 3}' + " " * 2_000_000) if is_giant else count(3)

    server.on("resources/read", read)
    connect(acme, server)
    read_due()
    assert [state for _, _, state in shown(acme)] == ["unavailable", "ok"]


@pytest.mark.requirement("S-009", "F-142")
def test_a_connection_that_is_lost_while_reading_shows_as_failed_after_one_quick_retry(
    acme, server
):
    def drop(request):
        raise Drop

    connector = connect(acme, server)
    server.on("resources/read", drop)
    server.on("server/discover", drop)
    read_due()
    assert Connector.objects.get().connection == "ready"
    server.intercept = drop
    check_connector(connector.pk)
    assert shown(acme) == [(None, "Failed", "failed")]
    server.intercept = None


@pytest.mark.requirement("F-123", "R-140")
def test_two_workspaces_with_one_server_use_their_own_connections(acme, other, server):
    connect(acme, server)
    connect(other, server)
    read_due()
    assert (server.count("resources/list"), server.count("resources/read")) == (2, 2)
    assert shown(acme) == shown(other) == [("3", DRAFTS, "ok")]


@pytest.mark.requirement("D12")
def test_a_server_that_has_moved_to_another_origin_wants_its_address_corrected(acme, server):
    def elsewhere(request):
        return Reply(307, {"location": "https://other.example/mcp"})

    connector = connect(acme, server)
    server.intercept = elsewhere
    Connector.objects.update(check_due_at=timezone.now())
    check_connector(connector.pk)
    assert shown(acme) == [(None, "Configuration required", "configuration_required")]
    assert "https://other.example" in Connector.objects.get().failure
    server.intercept = None
    Connector.objects.update(check_due_at=timezone.now())
    check_connector(connector.pk)
    assert Connector.objects.get().connection == "ready"


@pytest.mark.requirement("F-058")
def test_a_server_that_says_its_list_changed_harms_nothing_and_causes_no_listing(acme, server):
    changed = {"jsonrpc": "2.0", "method": "notifications/resources/list_changed"}

    def read(request):
        result = answer(request, count(3))
        return stream(event(json.dumps(changed).encode()) * 50, event(result))

    server.on("resources/read", read)
    connect(acme, server)
    read_due()
    read_due()
    assert shown(acme) == [("3", DRAFTS, "ok")]
    assert server.count("resources/list") == 1
