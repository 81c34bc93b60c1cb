from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.protocol.facets import (
    MAX_TEXT_CHARS,
    Facet,
    InvalidRead,
    Level,
    advertises_facets,
    flatten,
    parse_count,
    parse_listing,
    parse_read,
)
from connectors.protocol.identifiers import FACETS

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def entry(**changes: Any) -> dict[str, Any]:
    return {
        "uri": "acme://facets/drafts",
        "name": "drafts",
        "title": "Drafts awaiting review",
        "mimeType": "application/json",
        "_meta": {FACETS: {}},
    } | changes


def read(text: Any, **changes: Any) -> dict[str, Any]:
    content = {"uri": "acme://facets/drafts", "mimeType": "application/json", "text": text}
    return {"contents": [content | changes]}


@pytest.mark.requirement("F-009")
@pytest.mark.parametrize("offered", [{}, {"later": [1]}])
def test_an_object_under_the_identifier_advertises(offered):
    assert advertises_facets({"resources": {}, "extensions": {FACETS: offered}})


@pytest.mark.requirement("F-006", "F-008", "F-010")
@pytest.mark.parametrize(
    "capabilities",
    [
        None,
        [],
        {},
        {"extensions": None},
        {"extensions": [FACETS]},
        {"extensions": {FACETS: None}},
        {"extensions": {FACETS: True}},
        {"extensions": {FACETS: []}},
        {"extensions": {FACETS.upper(): {}}},
        {"extensions": {FACETS + "-v2": {}}},
        {"experimental": {FACETS: {}}},
        {FACETS: {}},
    ],
)
def test_anything_else_does_not_advertise(capabilities):
    assert not advertises_facets(capabilities)


@pytest.mark.requirement("F-020", "F-021", "F-023")
@pytest.mark.parametrize(
    ("marker", "level"),
    [
        ({}, Level.WARNING),
        ({"level": "critical"}, Level.CRITICAL),
        ({"level": "warning"}, Level.WARNING),
        ({"level": "info", "unknown": {"level": "critical"}}, Level.INFO),
    ],
)
def test_a_marked_entry_is_a_facet_with_its_level(marker, level):
    facets, skipped = parse_listing([entry(_meta={FACETS: marker, "other": 1})])
    assert facets == [Facet("drafts", "acme://facets/drafts", "Drafts awaiting review", level)]
    assert skipped == []


@pytest.mark.requirement("F-022", "D5")
@pytest.mark.parametrize(
    "level",
    [None, 3, True, [], ["info"], {}, "Critical", " critical ", "urgent", "error", "", "__proto__"],
)
def test_an_unknown_level_is_a_warning(level):
    facets, _ = parse_listing([entry(_meta={FACETS: {"level": level}})])
    assert [facet.level for facet in facets] == [Level.WARNING]


@pytest.mark.requirement("F-024", "F-025", "F-031", "D5")
@pytest.mark.parametrize(
    "meta", [None, 5, "x", [], {}, {FACETS: None}, {FACETS: True}, {FACETS: "x"}, {FACETS: []}]
)
def test_an_unmarked_entry_is_an_ordinary_resource(meta):
    facets, skipped = parse_listing([entry(_meta=meta), entry(name="sibling")])
    assert [facet.name for facet in facets] == ["sibling"]
    assert skipped == []


@pytest.mark.requirement("F-026", "F-027", "F-028", "F-029", "D5")
@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"title": None}, "title"),
        ({"title": 5}, "title"),
        ({"title": ""}, "title"),
        ({"title": " \t\n "}, "title"),
        ({"title": "\u200b\u2060"}, "title"),
        ({"title": "x" * (MAX_TEXT_CHARS + 1)}, "title"),
        ({"mimeType": None}, "mimeType"),
        ({"mimeType": ["application/json"]}, "mimeType"),
        ({"mimeType": "text/plain"}, "text/plain"),
        ({"mimeType": "application/json; charset=utf-8"}, "charset=utf-8"),
        ({"mimeType": "Application/JSON"}, "Application/JSON"),
        ({"name": None}, "name"),
        ({"name": "  "}, "name"),
        ({"name": "\ud800"}, "name"),
        ({"uri": 7}, "uri"),
        ({"uri": ""}, "uri"),
        ({"uri": "a:\udfff"}, "uri"),
    ],
)
def test_a_marked_entry_with_a_fault_is_skipped_with_the_reason(changes, word):
    facets, skipped = parse_listing([entry(**changes), entry(name="sibling")])
    assert [facet.name for facet in facets] == ["sibling"]
    assert [word in one.reason for one in skipped] == [True]


@pytest.mark.requirement("F-035")
@pytest.mark.parametrize("broken", [None, 5, "x", [], {}, {"_meta": {FACETS: {}}}])
def test_a_broken_entry_costs_itself_alone(broken):
    facets, _ = parse_listing([broken, entry()])
    assert [facet.name for facet in facets] == ["drafts"]


def test_a_skipped_entry_is_told_by_words_of_bounded_length():
    _, [skipped] = parse_listing([entry(title="", uri="u\n" * 10_000, name="\ud800" * 10_000)])
    assert skipped.uri == "u " * 99 + "u…"
    assert skipped.name == "\ufffd" * 199 + "…"


@pytest.mark.requirement("F-030")
@pytest.mark.parametrize(
    "uri", ["https://x.example/a b", "ui:x", "files:///a", "x", "a:b\x00c", "é://ü", "data:,"]
)
def test_any_uri_is_kept_exactly(uri):
    [facet], _ = parse_listing([entry(uri=uri)])
    assert facet.uri == uri


@pytest.mark.requirement("F-122")
@pytest.mark.parametrize("name", ["a:b/c", "a\x00b", "x" * 10_000, " é ", "__proto__"])
def test_any_name_is_kept_exactly(name):
    [facet], _ = parse_listing([entry(name=name)])
    assert facet.name == name


@pytest.mark.requirement("F-032")
def test_of_two_facets_with_one_name_the_first_wins():
    facets, [skipped] = parse_listing([entry(), entry(uri="acme://other")])
    assert [facet.uri for facet in facets] == ["acme://facets/drafts"]
    assert (skipped.uri, skipped.name) == ("acme://other", "drafts")
    assert "same name" in skipped.reason


@pytest.mark.requirement("F-032")
def test_a_skipped_entry_does_not_take_its_name_from_a_good_one():
    facets, _ = parse_listing([entry(title=""), entry()])
    assert [facet.name for facet in facets] == ["drafts"]


@pytest.mark.requirement("F-033")
def test_two_names_may_share_one_uri():
    facets, skipped = parse_listing([entry(), entry(name="other")])
    assert [facet.name for facet in facets] == ["drafts", "other"]
    assert skipped == []


@pytest.mark.requirement("F-040")
@pytest.mark.parametrize(
    ("title", "shown"),
    [
        (" Drafts\n\tawaiting \x00 review\u2028", "Drafts awaiting review"),
        ("<img onerror=x></script>{{ 1 }}", "<img onerror=x></script>{{ 1 }}"),
        ("\u202eabc", "\u202eabc"),
        ("🙂 \ud83d", "🙂 \ufffd"),
        ("x" * 5_000, "x" * 5_000),
    ],
)
def test_a_title_is_one_line_of_plain_text(title, shown):
    [facet], _ = parse_listing([entry(title=title)])
    assert facet.title == shown == flatten(title)


MEMBERS = st.sampled_from(["uri", "name", "title", "mimeType", "_meta"])
MARKED = st.dictionaries(MEMBERS, JSON).map(lambda changes: entry(**changes))
LEVELLED = JSON.map(lambda level: entry(_meta={FACETS: {"level": level}}))


@given(st.lists(JSON | MARKED | LEVELLED))
@pytest.mark.requirement("F-035")
def test_no_json_makes_a_listing_fail(entries):
    facets, skipped = parse_listing([entry(name="sibling"), *entries])
    assert facets[0].name == "sibling"
    assert len(facets) + len(skipped) <= 1 + len(entries)


@pytest.mark.requirement("F-070", "F-071", "F-072", "F-073", "F-078", "D6")
@pytest.mark.parametrize(
    ("text", "count"),
    [
        ('{"count": 3}', 3),
        (' \n{"items": [1, {"count": 9}], "count": 3, "x": 1e999}\n ', 3),
        ('{"count": 0}', 0),
        ('{"count": -0}', 0),
        ('{"count": -0.0}', 0),
        ('{"count": 1e-400}', 0),
        ('{"count": 0e999999999999999999999}', 0),
        ('{"count": 1e3}', 1000),
        ('{"count": 1E2}', 100),
        ('{"count": 3.0}', 3),
        ('{"count": 0.1e1}', 1),
        ('{"count": 9007199254740993}', 9007199254740993),
        ('{"count": 9007199254740993.0}', 9007199254740993),
        ('{"count": 99999999999999999999}', 99999999999999999999),
        ('{"count": 1e22}', 10**22),
        ('{"count": 1.5e300}', 15 * 10**299),
        ('{"count": 1%se-400}' % ("0" * 400), 1),
        ('{"count":1,"count":2}', 2),
    ],
)
def test_a_whole_number_of_0_or_more_is_a_count_to_the_last_digit(text, count):
    assert parse_count(text) == count


@pytest.mark.requirement("F-074", "F-075", "F-076", "F-077", "F-079", "F-080", "D6")
@pytest.mark.parametrize(
    "text",
    [
        *(
            f'{{"count": {value}}}'
            for value in [
                *("2.5", "-1", '"3"', "true", "false", "null", "[1]", "{}", "-1.0", "0.1"),
                *("NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1e999999999999999999999"),
                *(
                    "9007199254740992.5",
                    "+1",
                    "01",
                    "1.",
                    ".5",
                    "0x1",
                    "1_0",
                    "\uff13",
                    "9" * 5_000,
                ),
            ]
        ),
        *("{}", '{"Count": 3}', '{"data": {"count": 3}}', "[3]", "3", '"x"', "true", "null"),
        *("", "three", '{"count": 3} x', '{"count": 3,}', '{"count": NaN, "count": 3}'),
        *('\ufeff{"count": 3}', "[" * 100_000, '{"a":' * 100_000, '{"count": 3}' + " " * 2**20),
    ],
)
def test_anything_else_is_a_failed_read(text):
    assert parse_count(text) is None


@pytest.mark.requirement("F-079")
@pytest.mark.parametrize("literal", ["0.%s1", "1.%s", "1%s", "1%se-1000000", "1e%s1", "1e-%s1"])
def test_a_number_with_a_million_digits_is_settled_in_no_time(literal):
    started = time.process_time()
    parse_count('{"count": ' + literal % ("0" * 1_000_000) + "}")
    assert time.process_time() - started < 1


@given(st.text() | JSON.map(json.dumps) | JSON.map(lambda body: json.dumps({"count": body})))
@pytest.mark.requirement("F-076")
def test_no_text_makes_a_count_raise(text):
    count = parse_count(text)
    assert count is None or (type(count) is int and count >= 0)


@given(st.integers(min_value=0, max_value=10**300))
@pytest.mark.requirement("F-073")
def test_every_count_survives_as_it_was_written(count):
    assert parse_count(json.dumps({"count": count})) == count
    assert parse_count(f'{{"count": {count}.0}}') == count
    assert parse_count(f'{{"count": {count}.5}}') is None


@pytest.mark.requirement("F-070", "F-084", "F-085", "F-086", "D6")
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"uri": "other:x"},
        {"uri": None},
        {"mimeType": None},
        {"mimeType": "Application/JSON ; charset=utf-8"},
        {"blob": None},
        {"_meta": 5},
    ],
)
def test_a_read_with_one_json_text_gives_its_count(changes):
    assert parse_read(read('{"count": 3}', **changes)) == 3


@pytest.mark.requirement("F-085")
def test_a_content_without_a_media_type_is_accepted():
    assert parse_read({"contents": [{"text": '{"count": 3}'}], "resultType": "complete"}) == 3


@pytest.mark.requirement("F-074", "F-081", "F-082", "F-083", "F-084", "D6")
@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (None, InvalidRead.NOT_A_RESULT),
        ([], InvalidRead.NOT_A_RESULT),
        (read('{"count": 3}') | {"resultType": "input_required"}, InvalidRead.NOT_A_RESULT),
        ({}, InvalidRead.EMPTY),
        ({"contents": None}, InvalidRead.EMPTY),
        ({"contents": {"0": 1}}, InvalidRead.EMPTY),
        ({"contents": []}, InvalidRead.EMPTY),
        ({"contents": read("{}")["contents"] * 2}, InvalidRead.SEVERAL),
        ({"contents": ["x"]}, InvalidRead.NOT_TEXT),
        (read(None), InvalidRead.NOT_TEXT),
        (read({"count": 3}), InvalidRead.NOT_TEXT),
        (read(None, blob="e30="), InvalidRead.NOT_TEXT),
        (read('{"count": 3}', blob="e30="), InvalidRead.NOT_TEXT),
        (read('{"count": 3}', mimeType="text/plain"), InvalidRead.MEDIA_TYPE),
        (read('{"count": 3}', mimeType="application/json5"), InvalidRead.MEDIA_TYPE),
        (read('{"count": 3}', mimeType=5), InvalidRead.MEDIA_TYPE),
        (read("three"), InvalidRead.NOT_JSON),
        (read("3"), InvalidRead.NOT_AN_OBJECT),
        (read("{}"), InvalidRead.NO_COUNT),
        (read('{"count": true}'), InvalidRead.NOT_A_COUNT),
        (read(" " * 2**21), InvalidRead.TOO_LONG),
    ],
)
def test_a_read_without_a_count_says_why(result, reason):
    assert parse_read(result) is reason


@given(JSON | JSON.map(lambda contents: {"contents": contents}) | JSON.map(read))
@pytest.mark.requirement("F-081")
def test_no_result_makes_a_read_raise(result):
    assert isinstance(parse_read(result), int | InvalidRead)
