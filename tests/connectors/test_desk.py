"""Which templates overlap, what is said about them, and how much work that may be."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from connectors.desk import MAX_EVENTS, desk_of, warning_of
from connectors.desk_words import answer_of, taken_by
from connectors.endpoint.stored import catalogue_for
from connectors.models import ToolCall, TraceEvent
from connectors.overlaps import MAX_OVERLAPS, compare, example_of
from connectors.protocol.uri_templates import owns, parse
from tests.connectors.outside import install, relist, tool


def claims(**templates):
    """Connector ids 1, 2, … in the order given."""
    return {
        number: [parse(each) for each in texts]
        for number, texts in enumerate(templates.values(), start=1)
    }


def found(**templates):
    """Each overlap as its example and who owns it."""
    comparison = compare(claims(**templates), lambda: False)
    return [(each.uri, sorted(each.claims)) for each in comparison.overlaps]


@pytest.mark.parametrize(
    ("a", "b", "example"),
    [
        ("crm://contacts/{id}", "crm://contacts/{id}", "crm://contacts/id"),
        ("crm://contacts/{id}", "crm://contacts/{contact}", "crm://contacts/contact"),
        ("crm://contacts/{id}", "crm://{+path}", "crm://contacts/id"),
        ("crm://contacts/{id}", "CRM://contacts/{id}", "crm://contacts/id"),
        ("crm://contacts/{id}", "{+uri}", "crm://contacts/id"),
        ("crm://contacts/42", "crm://contacts/{id}", "crm://contacts/42"),
        ("{+a}", "{+b}", "example://a"),
    ],
)
def test_two_templates_that_own_a_uri_overlap_there(a, b, example):
    assert found(crm=[a], legacy=[b]) == [(example, [1, 2])]
    assert all(owns(parse(each), example) for each in (a, b))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("crm://contacts/{id}", "crm://signals/{id}"),
        ("crm://contacts/{id}", "crm://contacts/{id}/notes"),
        ("crm://{id}/a", "crm://{id}/b"),
        ("crm://s/{id}", "mail://s/{id}"),
        # Neither can be cited: one has no scheme, the other belongs to the host.
        ("{a}", "{b}"),
        ("files://{+path}", "FILES://{+path}"),
    ],
)
def test_templates_without_a_common_uri_do_not_overlap(a, b):
    assert found(crm=[a], legacy=[b]) == []


@pytest.mark.requirement("R-053")
def test_a_connector_does_not_overlap_with_itself():
    assert found(crm=["crm://s/{id}", "crm://{+path}"], other=["mail://{id}"]) == []


def test_three_that_own_one_uri_are_one_overlap():
    same = "crm://contacts/{id}"
    assert found(a=[same], b=[same], c=["crm://{+path}"]) == [("crm://contacts/id", [1, 2, 3])]


def test_each_pair_of_a_server_that_is_installed_twice_is_an_overlap():
    templates = ["crm://contacts/{id}", "crm://signals/{id}"]
    assert [uri for uri, _ in found(a=templates, b=templates)] == [
        "crm://contacts/id",
        "crm://signals/id",
    ]


PIECES = st.sampled_from(["a", "b", "/", "{x}", "{+y}", "{?q}"])
TEXTS = st.lists(PIECES, max_size=4).map(lambda pieces: "s://" + "".join(pieces))


@given(st.lists(st.lists(TEXTS, max_size=4), min_size=2, max_size=4))
def test_comparing_by_beginnings_finds_what_comparing_everything_finds(templates):
    given = {number: [parse(text) for text in texts] for number, texts in enumerate(templates)}
    pairs = {
        frozenset((one, other))
        for overlap in compare(given, lambda: False).overlaps
        for one in overlap.claims
        for other in overlap.claims
        if one != other
    }
    plain = {
        frozenset((one, other))
        for one in given
        for other in given
        if one < other and any(example_of(a, b) for a in given[one] for b in given[other])
    }
    assert pairs == plain


def test_fifty_connectors_with_twenty_templates_each_are_compared_at_once():
    many = {
        f"c{each}": [f"crm://app{each}/things{number}/{{id}}" for number in range(20)]
        for each in range(50)
    }
    started = time.perf_counter()
    assert found(**many, again=many["c7"]) != []
    assert time.perf_counter() - started < 0.5


def test_hostile_templates_end_with_the_time_and_say_so():
    heavy = [f"s://{{a{i}}}{{+b}}{{?c,d{i}*}}{{#e}}x{{/f*}}" for i in range(60)]
    until = time.monotonic() + 0.2
    comparison = compare(
        claims(a=heavy, b=[each + "y" for each in heavy]), lambda: time.monotonic() > until
    )
    assert not comparison.is_complete
    assert time.monotonic() < until + 1


def test_more_overlaps_than_anybody_settles_are_cut():
    texts = [f"s://{number}/{{id}}" for number in range(MAX_OVERLAPS + 20)]
    comparison = compare(claims(a=texts, b=texts), lambda: False)
    assert (len(comparison.overlaps), comparison.is_complete) == (MAX_OVERLAPS, False)


@pytest.mark.parametrize(
    ("template", "uri", "taken"),
    [
        ("crm://s/{id}", "crm://s/42", "42"),
        ("crm://s/{id}", "crm://s/", ""),
        ("crm://s/{id}/notes", "crm://s/42/notes", "42"),
        ("crm://s{?q}", "crm://s?q=1", "?q=1"),
        ("crm://{a}/{b}", "crm://1/2", None),
        ("crm://s/42", "crm://s/42", None),
        ("{+uri}", "crm://s/42", None),
    ],
)
def test_what_the_only_expression_stands_for_is_told(template, uri, taken):
    assert taken_by(parse(template), uri) == taken


# --- In a workspace


def desk(workspace, user):
    now = timezone.now()
    return desk_of(workspace, catalogue_for(workspace, user, now), now)


def answer(workspace, user, uri):
    return answer_of(uri, catalogue_for(workspace, user, timezone.now()))


def refused_call(workspace, *uris, code="ambiguous", age_days=0, tool="mail__send"):
    call = ToolCall.objects.create(
        workspace=workspace,
        tool=tool,
        caller="agent",
        started_at=timezone.now() - timedelta(days=age_days),
        duration_ms=1,
        outcome="ok",
    )
    for position, uri in enumerate(uris):
        TraceEvent.objects.create(
            call=call, position=position, kind="resource_argument", offset_ms=0, uri=uri, code=code
        )
    return call


@pytest.fixture
def crm(acme):
    return install(acme, "crm", name="CRM", listings={"templates": ["crm://contacts/{id}"]})


@pytest.fixture
def legacy(acme):
    listed = {"templates": ["crm://contacts/{contact}"]}
    return install(acme, "legacy", name="Legacy CRM", listings=listed)


@pytest.mark.requirement("D8", "R-163")
@pytest.mark.django_db
def test_the_desk_names_both_and_the_template_of_each(acme, alice, crm, legacy):
    [case] = desk(acme, alice).cases
    assert case.overlap.uri == "crm://contacts/contact"
    assert [(each.connector.name, each.template.text) for each in case.sides] == [
        ("CRM", "crm://contacts/{id}"),
        ("Legacy CRM", "crm://contacts/{contact}"),
    ]
    assert case.sides[0].segments == [("crm://contacts/", False), ("{id}", True)]
    assert case.possible_since is not None
    assert case.possible_since.connector.asked_at == max(crm.asked_at, legacy.asked_at)


@pytest.mark.requirement("R-063", "D8")
@pytest.mark.django_db
@pytest.mark.parametrize(
    "facts", [{"connection": "failed"}, {"connection": "starting"}, {"sign_in_needed": True}]
)
def test_a_claimant_that_is_not_ready_still_counts(acme, alice, crm, facts):
    install(acme, "old", listings={"templates": ["crm://contacts/{id}"]}, **facts)
    assert len(desk(acme, alice).cases) == 1


@pytest.mark.requirement("R-068")
@pytest.mark.django_db
def test_connectors_at_rest_do_not_count_and_are_named(acme, alice, crm):
    rest = install(acme, "old", asked_at=None, listings={"templates": ["crm://contacts/{id}"]})
    shown = desk(acme, alice)
    assert (shown.cases, shown.at_rest) == ([], [rest])


@pytest.mark.requirement("R-055", "R-061")
@pytest.mark.django_db
def test_other_workspaces_and_personal_connectors_claim_nothing(acme, other, alice, crm):
    same = {"templates": ["crm://contacts/{id}"]}
    install(other, "theirs", listings=same)
    install(alice, "mine", listings=same)
    assert desk(acme, alice).cases == []
    assert answer(acme, alice, "crm://contacts/42").kind == "one"


@pytest.mark.django_db
def test_a_new_listing_settles_an_overlap(acme, alice, crm, legacy):
    relist(legacy, "templates", ["old-crm://contacts/{id}"])
    assert desk(acme, alice).cases == []


@pytest.mark.django_db
def test_the_effect_of_taking_one_away_is_told(acme, alice, crm, legacy):
    [case] = desk(acme, alice).cases
    assert [each.effect for each in case.sides] == [
        "crm://contacts/… will be served by Legacy CRM.",
        "crm://contacts/… will be served by CRM.",
    ]


@pytest.mark.django_db
def test_the_effect_tells_what_it_does_not_settle(acme, alice, crm, legacy):
    install(acme, "third", listings={"templates": ["crm://{+path}"]})
    [case] = desk(acme, alice).cases
    assert case.sides[0].effect == (
        "Legacy CRM and Third will still serve crm://contacts/…: it stays ambiguous."
    )


@pytest.mark.django_db
def test_the_effect_tells_that_the_other_one_is_not_ready(acme, alice, crm):
    install(acme, "old", connection="failed", listings={"templates": ["crm://contacts/{id}"]})
    [case] = desk(acme, alice).cases
    assert case.sides[0].effect == (
        "crm://contacts/… will be served by Old, which is not ready (Failed): until it is, "
        "nothing is read."
    )


@pytest.mark.django_db
def test_tools_that_cite_the_scheme_are_counted(acme, alice, crm, legacy):
    tools = [
        tool("send", cites={"citations": ["CRM", "mail"]}),
        tool("log", cites={"a": ["crm"], "b": ["crm"]}),
        tool("plain"),
        tool("other", cites={"a": ["mail"]}),
    ]
    install(acme, "mail", listings={"tools": tools})
    [case] = desk(acme, alice).cases
    assert case.citing_tools == 2


@pytest.mark.django_db
def test_refused_calls_of_seven_days_are_counted_once_each(acme, other, alice, crm, legacy):
    refused_call(acme, "crm://contacts/1", "crm://contacts/2")
    refused_call(acme, "crm://contacts/1")
    refused_call(acme, "crm://contacts/1", age_days=8)
    refused_call(acme, "crm://contacts/1", code="not_found")
    refused_call(acme, "mail://1")
    refused_call(other, "crm://contacts/1")
    [case] = desk(acme, alice).cases
    assert case.refused_calls == 2


@pytest.mark.django_db
def test_what_refuses_most_calls_comes_first(acme, alice):
    same = {"templates": ["a://{id}", "b://{id}"]}
    install(acme, "one", listings=same)
    install(acme, "two", listings=same)
    refused_call(acme, "b://1")
    assert [each.overlap.uri for each in desk(acme, alice).cases] == ["b://id", "a://id"]


@pytest.mark.django_db
def test_a_count_of_very_many_refusals_says_that_it_is_cut(acme, alice, crm, legacy):
    call = refused_call(acme)
    TraceEvent.objects.bulk_create(
        TraceEvent(
            call=call,
            position=number,
            kind="resource_argument",
            offset_ms=0,
            uri=f"crm://contacts/{number}",
            code="ambiguous",
        )
        for number in range(MAX_EVENTS)
    )
    assert desk(acme, alice).is_count_cut


@pytest.mark.django_db
def test_the_list_of_connectors_is_warned_by_the_number_of_templates(acme, alice, crm):
    now = timezone.now()
    assert warning_of(acme, catalogue_for(acme, alice, now), now) is None
    install(acme, "legacy", listings={"templates": ["crm://contacts/{id}"]})
    refused_call(acme, "crm://contacts/1")
    warned = warning_of(acme, catalogue_for(acme, alice, now), now)
    assert warned is not None
    assert (warned.templates, warned.refused_calls) == (2, 1)


@pytest.mark.requirement("D9")
@pytest.mark.django_db
@pytest.mark.parametrize(
    ("uri", "kind"),
    [
        ("crm://contacts/42", "one"),
        ("crm://contacts/", "one"),
        ("CRM://contacts/42", "one"),
        ("crm://contacts/4%2F2", "one"),
        ("crm://contacts/42/notes", "none"),
        ("crm://contacts/42?x=1", "none"),
        ("crm://contacts/é", "none"),
        ("crm://contacts/%zz", "none"),
        ("files://report.txt", "host"),
        ("SKILL://x", "host"),
        ("contacts/42", "no_uri"),
        ("\ud800://x", "no_uri"),
    ],
)
def test_who_serves_a_uri_is_answered_as_a_call_would_find(acme, alice, crm, uri, kind):
    assert answer(acme, alice, uri).kind == kind


@pytest.mark.django_db
def test_the_answers_are_words(acme, alice, crm, legacy):
    install(acme, "mail", connection="failed", listings={"templates": ["mail://{id}"]})
    assert answer(acme, alice, "crm://contacts/1").words == (
        "CRM and Legacy CRM both serve it: ambiguous. Neither of them is read."
    )
    assert answer(acme, alice, "mail://1").words == (
        "Mail serves it, but is not ready (Failed). "
        "Until it is, a call that cites it gets not_found."
    )
    assert answer(acme, alice, "ui://1").words.startswith("ui:// belongs to the host.")
