from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from connectors.models import Check, Connector, ListingKind, ToolCall
from connectors.protocol.identifiers import RESOURCE_ARGUMENTS
from overview.models import StoredFacet, digest_of
from tests.connectors.records import (
    ANSWERED,
    REFUSED,
    UNREACHABLE,
    added,
    asked,
    contacted,
    failed,
    ready,
)

HOSTILE = "<img src=x onerror=alert(1)>\u202e{{ 7 }}"

pytestmark = pytest.mark.django_db


def text_of(client, path=""):
    """What the page says, tags and white space aside."""
    html = client.get(f"/w/acme/connectors/{path}").content.decode()
    main = html[html.index("<main") : html.index("</main>")]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", main))


def lines_of(client, query=""):
    answer = client.get(f"/w/acme/connectors/{query}")
    return [line.connector.name for line in answer.context["lines"]]


def facet(connector, name, *, title=None, level="warning", epoch=None, **known):
    return StoredFacet.objects.create(
        connector=connector,
        name=name,
        name_digest=digest_of(name),
        uri=f"mail://{name}",
        title=title or name.capitalize(),
        level=level,
        position=StoredFacet.objects.count(),
        epoch=connector.epoch if epoch is None else epoch,
        **known,
    )


def listed(connector, kind, **fields):
    known = {"taken_at": timezone.now(), "epoch": connector.epoch}
    connector.listings.filter(kind=kind).update(**{**known, **fields})


def all_listed(connector, **fields):
    for kind in ListingKind:
        listed(connector, kind, **fields)
    return connector


@pytest.fixture
def several(acme):
    ready(acme, "mail")
    ready(acme, "books", name="books")
    failed(acme, "tasks")
    failed(acme, "crm", outcome=REFUSED)
    asked(added(acme, "legacy"))
    added(acme, "new")


def test_the_worst_come_first_then_names(alice_client, several):
    assert lines_of(alice_client) == ["Tasks", "Crm", "Legacy", "books", "Mail", "New"]


def test_a_filter_shows_one_status_and_the_counts_of_all(alice_client, several):
    assert lines_of(alice_client, "?status=ready") == ["books", "Mail"]
    page = text_of(alice_client, "?status=ready")
    assert "All 6" in page
    assert "Ready 2" in page
    assert "Reconnection needed 1" in page


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("?q=oo", ["books"]),
        ("?q=BOO", ["books"]),
        ("?q=%20mail ", ["Mail"]),
        ("?q=m&status=failed", []),
        ("?status=nonsense", []),
        ("?q=%00%ff", []),
    ],
)
def test_a_search_is_by_name_in_any_case(alice_client, several, query, names):
    assert lines_of(alice_client, query) == names


def test_a_search_that_finds_nothing_says_how_to_get_back(alice_client, several):
    assert "No connectors match. Show all connectors" in text_of(alice_client, "?q=zzz")


def test_members_have_no_buttons_in_the_list(bob_client, alice_client, several):
    assert "Try again" in text_of(alice_client)
    page = text_of(bob_client)
    assert "Tasks" in page
    assert not any(word in page for word in ("Try again", "Reconnect Crm", "Add connector"))


def test_an_empty_list_says_what_a_connector_is_and_who_can_add_one(
    acme, alice, bob_client, alice_client
):
    assert "Add connector" in text_of(alice_client)
    assert "Admins can add one: Alice" in text_of(bob_client)


def test_a_line_tells_how_it_stands(acme, alice_client):
    connector = ready(acme)
    facet(connector, "drafts")
    page = text_of(alice_client)
    assert "mail.example.com" in page
    assert "12 ms" in page
    assert "1 facet ·" in page
    contacted(connector, UNREACHABLE)
    assert "Nothing listens there." in text_of(alice_client)


def test_what_nobody_knows_yet_is_no_number(acme, alice_client):
    asked(added(acme))
    page = text_of(alice_client)
    assert "mail.example.com – never – –" in page
    assert "mail.example.com · never checked" in page
    contacted(Connector.objects.get(), ANSWERED)
    assert "mail.example.com 0 just now" in text_of(alice_client)


def test_who_disconnected_it_and_when_is_part_of_the_status(acme, alice, alice_client):
    connector = ready(acme)
    alice_client.post("/w/acme/connectors/mail/disconnect/")
    assert "Disconnected by Alice ," in text_of(alice_client)
    assert "Disconnected by Alice." in text_of(alice_client, f"{connector.slug}/")


def test_the_list_takes_the_same_statements_whatever_it_holds(
    acme, alice_client, several, django_assert_max_num_queries
):
    alice_client.get("/w/acme/connectors/")
    with django_assert_max_num_queries(16) as taken:
        alice_client.get("/w/acme/connectors/")
    few = len(taken)
    for number in range(10):
        facet(ready(acme, f"more-{number}"), "drafts")
    # What is remembered of the listings is read again when a connector is new.
    alice_client.get("/w/acme/connectors/")
    with django_assert_max_num_queries(few):
        alice_client.get("/w/acme/connectors/")


@pytest.mark.requirement("F-040")
def test_hostile_names_and_titles_are_text(acme, alice_client):
    connector = ready(acme, name=HOSTILE, server_name=HOSTILE)
    Connector.objects.update(server_name=HOSTILE, failure=HOSTILE)
    facet(connector, HOSTILE, title=HOSTILE)
    listed(
        connector,
        ListingKind.RESOURCES,
        skipped=[{"name": HOSTILE, "uri": None, "reason": "no title"}],
        cut_short=HOSTILE,
    )
    listed(connector, ListingKind.TEMPLATES, entries=[{"uriTemplate": HOSTILE, "title": HOSTILE}])
    declared = {RESOURCE_ARGUMENTS: {"arguments": {HOSTILE: {"schemes": ["crm"]}}}}
    listed(connector, ListingKind.TOOLS, entries=[{"name": HOSTILE, "_meta": declared}])
    for path in ("", "mail/", "mail/configure/", "mail/remove/"):
        html = alice_client.get(f"/w/acme/connectors/{path}").content.decode()
        assert "<img" not in html
        assert "{{ 7 }}" in html


@pytest.mark.parametrize(
    ("made", "is_pending"),
    [
        (added, False),
        (lambda ws: asked(added(ws)), True),
        (ready, True),
        (lambda ws: all_listed(ready(ws)), False),
        (lambda ws: facet(all_listed(ready(ws)), "drafts"), True),
        (lambda ws: all_listed(ready(ws), failed_at=timezone.now(), taken_at=None), False),
        (lambda ws: failed(ws, "mail"), False),
    ],
)
def test_a_page_asks_again_only_while_an_answer_is_on_its_way(acme, alice_client, made, is_pending):
    made(acme)
    if not is_pending:
        Connector.objects.update(check_due_at=timezone.now() + timedelta(minutes=5))
    answer = alice_client.get("/w/acme/connectors/mail/")
    assert answer.context["is_pending"] is is_pending
    assert ("data-pending" in answer.content.decode()) is is_pending


def test_looking_at_a_connector_has_its_counts_read(acme, bob_client):
    ready(acme)
    bob_client.get("/w/acme/connectors/mail/")
    acme.refresh_from_db()
    assert acme.watched_until > timezone.now()


def test_operations_tell_the_last_check_and_the_median_of_twenty(acme, alice_client):
    connector = ready(acme)
    Check.objects.all().delete()
    now = timezone.now()
    for number in range(30):
        Check.objects.create(
            connector=connector,
            at=now - timedelta(minutes=number),
            is_ok=True,
            latency_ms=number,
            result="Ready",
        )
    page = text_of(alice_client, "mail/")
    assert "12 ms (median of the last 20 checks: 10 ms)" in page
    assert "mail-server 1.4" in page
    assert "2026-07-28" in page
    assert "Facets advertised yes" in page


def test_check_now_is_there_for_members_of_a_ready_connector_only(acme, bob_client):
    connector = ready(acme)
    assert "Check now" in text_of(bob_client, "mail/")
    contacted(connector, UNREACHABLE)
    assert "Check now" not in text_of(bob_client, "mail/")


@pytest.mark.requirement("F-026", "F-027", "F-029", "F-032", "F-037")
def test_facets_tell_their_count_or_why_there_is_none(acme, alice_client):
    connector = ready(acme)
    now = timezone.now()
    facet(connector, "drafts", count="3", read_at=now)
    facet(connector, "done", level="info", count="0", read_at=now)
    facet(connector, "invoices", failed_at=now, failure="the count is not a whole number")
    facet(connector, "new", level="critical")
    facet(connector, "old", epoch=connector.epoch - 1, count="99", read_at=now)
    reasons = [("untitled", "it has no title"), (None, "mimeType is not application/json")]
    skipped = [{"name": name, "uri": "mail://x", "reason": reason} for name, reason in reasons]
    listed(connector, ListingKind.RESOURCES, skipped=skipped, cut_short="more than 50 pages")
    page = text_of(alice_client, "mail/")
    assert "Drafts · warning 3 · just now" in page
    assert "Done · info 0 · just now" in page
    assert "Invoices · warning unavailable" in page
    assert "failed: the count is not a whole number" in page
    assert "New · critical Checking…" in page
    assert "Old · warning Checking…" in page
    assert "99" not in page
    assert "untitled · it has no title" in page
    assert "mail://x · mimeType is not application/json" in page
    assert "The listing was cut short: more than 50 pages." in page


@pytest.mark.requirement("F-038", "F-056")
def test_a_failed_listing_is_told_and_what_was_listed_stays(acme, alice_client):
    connector = ready(acme)
    facet(connector, "drafts")
    listed(connector, ListingKind.RESOURCES, failed_at=timezone.now(), failure="Page 2 failed.")
    page = text_of(alice_client, "mail/")
    assert "Page 2 failed. What was listed before stays in use." in page
    assert "Drafts" in page


@pytest.mark.requirement("F-145", "F-147")
def test_counts_of_a_connector_that_is_not_ready_are_not_shown(acme, alice_client):
    connector = ready(acme)
    facet(connector, "drafts", count="424242", read_at=timezone.now())
    contacted(connector, UNREACHABLE)
    page = text_of(alice_client, "mail/")
    assert "Drafts" in page
    assert "424242" not in page


@pytest.mark.requirement("R-079", "R-081")
def test_templates_and_tools_with_what_they_take(acme, alice_client):
    connector = ready(acme)
    entries = [
        {"uriTemplate": "mail://{bad", "name": "Bad"},
        {"uriTemplate": 3},
        "junk",
        {"uriTemplate": "mail://{box}/{id}", "name": "A message"},
    ]
    listed(connector, ListingKind.TEMPLATES, entries=entries)
    arguments = {"files": {"schemes": ["files", "CRM"]}, "none": {"schemes": []}}
    declared = {RESOURCE_ARGUMENTS: {"arguments": arguments}}
    tools = [{"name": "send", "_meta": declared}, {"name": "plain"}, None]
    listed(connector, ListingKind.TOOLS, entries=tools)
    page = text_of(alice_client, "mail/")
    assert "mail://{box}/{id} · A message" in page
    assert "Cannot be used: the expression" in page
    assert page.count("uriTemplate is missing or not text") == 2
    assert "send files : crm, files" in page
    assert "plain" not in page


def test_the_ten_newest_tool_calls(acme, alice, alice_client):
    connector = ready(acme)
    for number in range(12):
        ToolCall.objects.create(
            workspace=acme,
            connector=connector,
            tool=f"tool-{number}",
            caller="outside",
            user=alice,
            started_at=timezone.now() - timedelta(minutes=number),
            duration_ms=5,
            outcome="tool_error",
        )
    answer = alice_client.get("/w/acme/connectors/mail/")
    assert [call.tool for call in answer.context["calls"]] == [f"tool-{n}" for n in range(10)]
    page = text_of(alice_client, "mail/")
    assert "Tool error" in page
    assert "Outside client, Alice" in page
