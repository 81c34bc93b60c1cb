"""The list of tool calls and one call's trace: who sees them, filters, pages, events."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.test import Client

from connectors.models import ToolCall, TraceEvent
from connectors.trace_pages import PAGE_CALLS
from tests.connectors.outside import install

pytestmark = pytest.mark.django_db
URL = "/w/acme/traces/"
NOON = datetime(2026, 11, 30, 12, 0, 0, 250_000, tzinfo=UTC)


def made(workspace, tool="crm__lookup", seconds=0, events=(), **facts):
    """A tool call so many seconds after noon. events: (uri, code, server, bytes)."""
    known = {"caller": "outside", "duration_ms": 120, "outcome": "ok"}
    call = ToolCall.objects.create(
        workspace=workspace,
        tool=tool,
        started_at=NOON + timedelta(seconds=seconds),
        **{**known, **facts},
    )
    for position, (uri, code, server, size) in enumerate(events):
        TraceEvent.objects.create(
            call=call,
            position=position,
            kind="resource_argument",
            offset_ms=7 + position,
            uri=uri,
            code=code,
            server=server,
            server_name=server.name if server else "",
            size_bytes=size,
        )
    return call


@pytest.fixture
def crm(acme):
    return install(acme, "crm", name="CRM")


def text(answer):
    assert answer.status_code == 200, answer.status_code
    return answer.content.decode()


def tools_in(answer):
    """The tools of the calls that a page shows, in its order."""
    table = text(answer).partition("<tbody>")[2].partition("</tbody>")[0]
    return [part.partition("</bdi>")[0] for part in table.split('<bdi class="clip">')[1:]]


@pytest.mark.requirement("R-165")
def test_traces_are_for_members_alone(acme, other, bob_client, carol_client):
    call = made(acme)
    for url in (URL, f"{URL}newer/", f"{URL}{call.pk}/"):
        assert bob_client.get(url).status_code == 200
        assert carol_client.get(url).status_code == 404
        assert carol_client.get(url.replace("acme", "other")).status_code == (
            404 if str(call.pk) in url else 200
        )
        assert carol_client.get(url.replace("acme", "nowhere")).status_code == 404
        assert Client().get(url)["Location"].startswith("/sign-in/")
        assert bob_client.post(url).status_code == 405
    assert "crm__lookup" not in text(carol_client.get("/w/other/traces/"))


def test_calls_of_somebodys_own_connector_are_theirs_alone(
    acme, alice, bob, alice_client, bob_client
):
    notes = install(bob, "notes")
    kept = made(acme, "my_notes__add", connector=notes, user=bob)
    removed = made(acme, "my_old__add", user=bob)
    made(acme, "my__add", user=bob)
    assert tools_in(bob_client.get(URL)) != []
    assert tools_in(alice_client.get(URL)) == ["my__add"]
    for call in (kept, removed):
        assert bob_client.get(f"{URL}{call.pk}/").status_code == 200
        assert alice_client.get(f"{URL}{call.pk}/").status_code == 404


def test_the_list_starts_with_the_newest_and_tells_what_happened(acme, bob, bob_client, crm):
    made(acme, "first")
    made(
        acme,
        "second",
        seconds=5,
        connector=crm,
        connector_name="CRM",
        user=bob,
        outcome="tool_error",
        resources_read=3,
        resources_refused=1,
    )
    page = text(bob_client.get(URL))
    assert tools_in(bob_client.get(URL)) == ["second", "first"]
    assert "3 read · 1 refused" in page
    assert "Tool error" in page
    assert "Outside client, <bdi>Bob</bdi>" in page
    assert "30 Nov 2026, 12:00:05" in page


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ({"tool": "LOOK"}, ["lookup"]),
        ({"outcome": "failed"}, ["send"]),
        ({"connector": "crm"}, ["send", "lookup"]),
        ({"code": "ambiguous"}, ["send"]),
        ({"code": "ok"}, ["send"]),
        ({"from": "2026-11-30T12:01"}, ["send"]),
        ({"to": "2026-11-30T12:01"}, ["other", "lookup"]),
        ({"from": "2026-11-30T13:01", "tz": "Europe/Berlin"}, ["send"]),
        ({"from": "2026-11-30"}, ["send", "other", "lookup"]),
        ({"tool": "o", "outcome": "ok"}, ["other", "lookup"]),
        # What makes no sense filters nothing.
        ({"connector": "nobody"}, ["send", "other", "lookup"]),
        ({"outcome": "'; --"}, ["send", "other", "lookup"]),
        ({"from": "yesterday"}, ["send", "other", "lookup"]),
        ({"from": "0001-01-01T00:00"}, ["send", "other", "lookup"]),
        ({"to": "9999-12-31T23:59"}, ["send", "other", "lookup"]),
        ({"from": "2026-11-30T12:01", "tz": "../../etc/passwd"}, ["send"]),
        ({"tz": "\x00"}, ["send", "other", "lookup"]),
        ({"before": "x~y", "seen": "2026-01-01T00:00:00~1"}, ["send", "other", "lookup"]),
        ({"before": "9999-12-31T23:59:59-23:59~" + str(uuid4())}, ["send", "other", "lookup"]),
    ],
)
def test_filters_are_an_address(acme, bob_client, crm, query, shown):
    made(acme, "lookup", connector=crm)
    made(acme, "other", seconds=30)
    made(
        acme,
        "send",
        seconds=90,
        outcome="failed",
        events=[("crm://1", "ok", crm, 3), ("crm://2", "ambiguous", None, 0)],
    )
    assert tools_in(bob_client.get(URL, query)) == shown


def test_nothing_that_matches_offers_to_clear(acme, bob_client):
    made(acme)
    page = text(bob_client.get(URL, {"tool": "nobody"}))
    assert "No calls match" in page
    assert "Clear" in page


def test_an_empty_list_says_what_a_trace_is(bob_client, acme):
    assert "Contents are never recorded" in text(bob_client.get(URL))


def links(answer, words):
    """The address behind a link."""
    before = text(answer).partition(f">{words}")[0]
    return before.rpartition('href="')[2].partition('"')[0].replace("&amp;", "&")


def test_older_calls_follow_without_gap_whatever_comes_meanwhile(acme, bob_client):
    for number in range(PAGE_CALLS + 3):
        # Several at one moment: the place in the list is exact all the same.
        made(acme, f"t{number:03}", seconds=number // 4)
    first = bob_client.get(URL, {"tool": "t"})
    made(acme, "t-new", seconds=100)
    second = bob_client.get(URL + links(first, "Older"))
    seen = tools_in(first) + tools_in(second)
    assert sorted(seen) == [f"t{number:03}" for number in range(PAGE_CALLS + 3)]
    assert "1 newer call – show" in text(second)
    assert "Older" not in text(second)
    assert tools_in(bob_client.get(links(second, "1 newer")))[0] == "t-new"


def test_the_line_of_newer_calls_comes_by_itself(acme, bob_client):
    made(acme)
    page = text(bob_client.get(URL))
    line = page.partition('data-newer="')[2].partition('"')[0].replace("&amp;", "&")
    assert text(bob_client.get(line)).strip() == ""
    for number in range(4):
        made(acme, seconds=number + 1)
    assert "4 newer calls – show" in text(bob_client.get(line))
    for number in range(120):
        made(acme, seconds=number + 10)
    assert "99+ newer calls – show" in text(bob_client.get(line))


@pytest.mark.requirement("R-160", "R-161", "R-163", "R-164")
def test_a_trace_tells_each_uri_its_server_outcome_and_size(acme, bob, bob_client, crm):
    call = made(
        acme,
        connector=crm,
        connector_name="CRM",
        user=bob,
        problem="The tool reported an error.",
        outcome="tool_error",
        events=[
            ("crm://signals/42", "ok", crm, 1204),
            ("mail://1", "scheme_not_declared", None, 0),
            ("crm://x y", "not_found", crm, 0),
            ("crm://2", "ambiguous", None, 0),
            ("crm://3", "not_text", crm, 0),
            ("crm://4", "too_large", crm, 0),
            ("crm://5", "over_limit", None, 0),
            ("crm://6", "rate_limited", None, 0),
        ],
    )
    page = text(bob_client.get(f"{URL}{call.pk}/"))
    assert "Contents are never recorded." in page
    assert str(call.pk) in page
    assert "250 ms" in page
    assert "1,204 bytes handed on" in page
    for words in [
        "Read</span>",
        "The argument does not declare this scheme; not read",
        "No connector here returned it",
        "More than one connector serves it; neither was read",
        "Holds content that is not text",
        "Longer than 49,600 characters; refused every time",
        "Past this call&#x27;s limits (32 URIs, 10 MiB); split the call",
        "This server&#x27;s resource budget is spent",
    ]:
        assert words in page
    assert "/w/acme/overlaps/?uri=crm%3A%2F%2F2" in page
    assert "/w/acme/overlaps/?uri=crm%3A%2F%2Fx%20y" in page
    assert "/w/acme/tools/call/?name=crm__lookup" in page
    assert page.count("/w/acme/connectors/crm/") > 4


def test_a_trace_outlives_its_connector_and_people(acme, bob, bob_client, crm):
    call = made(acme, connector=crm, connector_name="CRM", events=[("crm://1", "ok", crm, 3)])
    crm.delete()
    page = text(bob_client.get(f"{URL}{call.pk}/"))
    assert '<bdi>CRM</bdi> <span class="muted">(removed)</span>' in page


@pytest.mark.parametrize("path", ["not-an-id/", "5f0c7d0e-5d3c-4b1e-9c57-5b8a0b7f9c1d/"])
def test_a_trace_that_does_not_exist_is_not_found(acme, bob_client, path):
    assert bob_client.get(URL + path).status_code == 404


def test_an_unknown_code_is_shown_as_it_is(acme, bob_client):
    call = made(acme, events=[("crm://1", "brand_new", None, 0)])
    assert "brand_new" in text(bob_client.get(f"{URL}{call.pk}/"))


HOSTILE = '"><img src=x onerror=alert(1)>\u202e{{ 7 }}'


def test_hostile_text_stays_text(acme, bob_client):
    call = made(
        acme,
        HOSTILE,
        connector_name=HOSTILE,
        problem=HOSTILE,
        events=[(HOSTILE, "not_found", None, 0), ("\ud800\x00", "ok", None, 0)],
    )
    for url in (URL, f"{URL}{call.pk}/", f"{URL}?tool={HOSTILE}"):
        page = text(bob_client.get(url))
        assert "<img src=x" not in page
        assert "{{ 7 }}" in page


def test_a_page_of_calls_takes_a_few_statements(acme, bob, bob_client, crm, settings):
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    for number in range(30):
        made(acme, seconds=number, connector=crm, user=bob)
    with CaptureQueriesContext(
        connection,
    ) as used:
        text(bob_client.get(URL))
    assert len(used) <= 8, [each["sql"] for each in used]
