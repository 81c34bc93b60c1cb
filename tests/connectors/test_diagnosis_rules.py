"""What is said of each rule that a server breaks, and that a server without fault hears nothing."""

from __future__ import annotations

import pytest

from connectors.diagnosis.declarations import declaring, in_tools
from connectors.diagnosis.rules import (
    in_capabilities,
    in_pages,
    in_read,
    in_resources,
    in_templates,
)
from connectors.protocol.facets import Facet, InvalidRead, Level
from connectors.protocol.identifiers import FACETS, RESOURCE_ARGUMENTS
from connectors.sessions import Listed
from tests.overview.factories import entry

FACET = Facet("drafts", "acme://facets/drafts", "Drafts", Level.WARNING)


def said(findings):
    return [(each.is_failure, each.words) for each in findings]


def only(findings):
    """The one finding, as whether it is a failure and its words."""
    ((is_failure, words),) = said(findings)
    return is_failure, words


def test_a_server_that_keeps_the_rules_hears_nothing():
    capabilities = {"resources": {}, "extensions": {FACETS: {}, "other/one": None}}
    assert said(in_capabilities(capabilities)) == []
    assert said(in_capabilities({})) == []
    assert said(in_resources([entry(), {"uri": "a://b", "name": "b"}], is_advertised=True)) == []
    assert said(in_templates([{"uriTemplate": "crm://signals/{id}"}])) == []
    assert said(in_tools([tool({"citations": {"schemes": ["crm"]}}), {"name": "plain"}])) == []
    assert said(in_pages(Listed([], 1))) == []


@pytest.mark.requirement("F-008", "F-010", "F-011")
@pytest.mark.parametrize(
    ("capabilities", "words"),
    [
        ({"extensions": [FACETS]}, "is not an object"),
        ({"resources": {}, "extensions": {FACETS: None}}, "settings"),
        ({"resources": {}, "extensions": {FACETS: True}}, "settings"),
        ({"extensions": {FACETS: {}}}, "without the resources capability"),
        ({"resources": {}, "experimental": {FACETS: {}}}, "under “experimental”"),
        ({"resources": {}, "extensions": {f"{FACETS}-v2": {}}}, "compared exactly"),
        ({"resources": {}, "extensions": {FACETS.upper(): {}}}, "compared exactly"),
    ],
)
def test_an_advertisement_that_does_not_count_is_explained(capabilities, words):
    is_failure, found = only(in_capabilities(capabilities))
    assert is_failure
    assert words in found


@pytest.mark.parametrize(
    ("changes", "is_failure", "words"),
    [
        ({"title": None}, True, "title is missing"),
        ({"mimeType": "application/json; charset=utf-8"}, True, "exactly application/json"),
        ({"name": " "}, True, "name is blank"),
        ({"_meta": {FACETS: True}}, True, "is not an object"),
        ({"_meta": {FACETS: {"level": "urgent"}}}, False, "read as warning"),
        ({"_meta": {FACETS: {"level": ["info"]}}}, False, "read as warning"),
    ],
)
def test_an_entry_that_is_no_facet_or_another_than_meant_is_explained(changes, is_failure, words):
    good = entry("other")
    found = only(in_resources([good, entry(**changes)], is_advertised=True))
    assert found[0] is is_failure
    assert words in found[1]


def test_marked_entries_without_an_advertisement_and_none_with_one_are_said():
    assert "does not advertise" in only(in_resources([entry()], is_advertised=False))[1]
    assert only(in_resources([], is_advertised=True)) == (
        False,
        "The server advertises facets and lists none.",
    )


@pytest.mark.requirement("F-037", "D4")
def test_a_listing_that_is_not_whole_is_said():
    found = said(in_pages(Listed([], 1, cut_short="the server repeats a page", unreadable=2)))
    assert [is_failure for is_failure, _ in found] == [True, True]
    assert "the server repeats a page" in found[0][1]


@pytest.mark.requirement("R-065", "R-079", "R-081", "R-082")
@pytest.mark.parametrize(
    ("template", "is_failure", "words"),
    [
        ("crm://{id", True, "claims no URIs"),
        (None, True, "missing or not text"),
        (f"crm://{'x' * 2000}", True, "claims no URIs"),
        ("files://{path}", False, "belongs to the host"),
        ("{+uri}", False, "ambiguous"),
    ],
)
def test_a_template_that_claims_nothing_or_everything_is_explained(template, is_failure, words):
    found = only(in_templates([{"uriTemplate": template}]))
    assert found[0] is is_failure
    assert words in found[1]


def tool(arguments, **changes):
    schema = {"properties": {"citations": {"type": "array"}, "record": {"type": "object"}}}
    meta = {RESOURCE_ARGUMENTS: {"arguments": arguments}}
    return {"name": "send", "inputSchema": schema, "_meta": meta, **changes}


@pytest.mark.requirement("R-011", "R-012", "R-013", "R-018")
@pytest.mark.parametrize(
    ("given", "words"),
    [
        (tool({}), ["“arguments” is missing"]),
        (tool([]), ["“arguments” is missing"]),
        (tool({}, _meta={RESOURCE_ARGUMENTS: True}), ["“arguments” is missing"]),
        (tool({"citations": {}}), ["“schemes” is missing"]),
        (tool({"citations": {"schemes": "crm"}}), ["“schemes” is missing"]),
        (tool({"citations": {"schemes": ["*"]}}), ["no wildcard", "no valid scheme"]),
        (tool({"citations": {"schemes": ["crm://", "crm"]}}), ["its name alone"]),
        (tool({"citations": {"schemes": [5, "crm"]}}), ["not text"]),
        (tool({"citations": {"schemes": ["1crm", "crm"]}}), ["a scheme is a letter"]),
        (tool({"nowhere": {"schemes": ["crm"]}}), ["no such property"]),
        (tool({"record": {"schemes": ["crm"]}}), ["its type is object"]),
        ({"name": "x", "inputSchema": {RESOURCE_ARGUMENTS: {}}}, ["inside inputSchema"]),
    ],
)
def test_a_declaration_that_declares_less_than_was_meant_is_explained(given, words):
    found = said(in_tools([given]))
    assert all(is_failure for is_failure, _ in found)
    assert [part for part, (_, said) in zip(words, found, strict=True) if part not in said] == []


def test_a_scheme_of_the_hosts_own_is_no_mistake_but_said():
    assert only(in_tools([tool({"citations": {"schemes": ["files"]}})]))[0] is False
    assert declaring([tool({"citations": {"schemes": ["crm"]}}), tool({}), None]) == 1


@pytest.mark.parametrize("hostile", [None, 5, [], {"_meta": []}, {"_meta": {"x": 1}, "name": 3}])
def test_nothing_that_a_server_lists_breaks_a_rule_book(hostile):
    for rules in (in_tools, in_templates):
        list(rules([hostile]))
    list(in_resources([hostile], is_advertised=True))


def test_a_read_is_a_count_or_the_reason_why_not():
    good = {"contents": [{"uri": "x", "mimeType": "application/json", "text": '{"count": 3}'}]}
    assert in_read(FACET, good, 0.1) == (3, [])
    count, findings = in_read(FACET, {"contents": [{"text": '{"count": 3}'}]}, 2.5)
    assert (count, [each.is_failure for each in findings]) == (3, [False, False])
    count, (finding,) = in_read(FACET, {"contents": [{"text": '{"count": "3"}'}]}, 0.1)
    assert count is None
    assert InvalidRead.NOT_A_COUNT.value in finding.words
