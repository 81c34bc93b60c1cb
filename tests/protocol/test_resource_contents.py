from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.protocol.resource_contents import (
    Contents,
    Limits,
    OutcomeCode,
    Refusal,
    parse_contents,
)

NOT_FOUND = Refusal(OutcomeCode.NOT_FOUND)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def result(*entries: Any) -> dict[str, Any]:
    return {"contents": list(entries)}


def text(content: Any = "x", **changes: Any) -> dict[str, Any]:
    return {"uri": "crm://1", "text": content} | changes


@pytest.mark.requirement("R-090", "R-091", "R-092", "R-099", "R-100", "R-101", "R-161")
@pytest.mark.parametrize(
    ("entries", "handed_on", "size_bytes"),
    [
        ([text("a")], [text("a")], 1),
        ([text("é", mimeType="a/b")], [text("é", mimeType="a/b")], 2),
        ([text("a"), text("\U0001f642", uri="x")], [text("a"), text("\U0001f642", uri="x")], 5),
        ([text("")], [text("")], 0),
        ([text(_meta={}, annotations=None, more=1, blob=None)], [text()], 1),
        ([text(mimeType=None)], [text()], 1),
        ([text("ui://x files://y")], [text("ui://x files://y")], 16),
    ],
)
def test_text_is_handed_on_with_uri_and_media_type_and_nothing_else(entries, handed_on, size_bytes):
    contents = parse_contents(result(*entries), Limits())
    assert contents == Contents(tuple(handed_on), size_bytes)
    assert contents.code == "ok"


@pytest.mark.requirement("R-093", "R-094")
@pytest.mark.parametrize(
    "raw",
    [
        *(None, [], "x", {}, {"contents": None}, {"contents": {}}, {"contents": []}),
        {"contents": [text()], "resultType": "input_required"},
        *map(result, [None, "x", {}, [], text(None), text(5), text(["x"])]),
        *(result(text(uri=uri)) for uri in [None, 5, "\ud800"]),
        *(result(text(), broken) for broken in [text("\udfff"), text(mimeType=5), {"uri": "x"}]),
    ],
)
def test_an_empty_or_malformed_result_is_not_found(raw):
    assert parse_contents(raw, Limits()) == NOT_FOUND


@pytest.mark.requirement("R-095", "R-098")
@pytest.mark.parametrize(
    "entries",
    [
        [{"uri": "x", "blob": "eA=="}],
        [text(), {"uri": "x", "blob": ""}],
        [text(blob="eA==")],
        [{"blob": "eA==", "text": "x", "uri": "x"}],
        [text(blob=5)],
        [text("x" * 49_601), {"uri": "x", "blob": "eA=="}],
        [None, {"blob": "eA=="}],
    ],
)
def test_any_blob_makes_the_resource_not_text(entries):
    assert parse_contents(result(*entries), Limits()) == Refusal(OutcomeCode.NOT_TEXT)


@pytest.mark.requirement("R-096", "R-097")
@pytest.mark.parametrize(
    "texts",
    [
        ["x" * 49_600],
        ["x" * 24_800, "", "x" * 24_800],
        ["\U0001f642" * 24_800],
        ["\uffff" * 49_600],
    ],
)
def test_a_resource_is_measured_in_utf_16_code_units_over_all_its_entries(texts):
    fitting = parse_contents(result(*map(text, texts)), Limits())
    assert isinstance(fitting, Contents)
    assert fitting.size_bytes <= Limits().read_bytes
    longer = [*texts[:-1], texts[-1] + texts[-1][0]]
    assert parse_contents(result(*map(text, longer)), Limits()) == Refusal(OutcomeCode.TOO_LARGE)


@pytest.mark.parametrize(
    "entries", [[text(uri="x" * 300_000)], [text("", uri="") for _ in range(100_000)]]
)
def test_a_resource_cannot_swell_a_call_by_what_is_around_its_text(entries):
    assert parse_contents(result(*entries), Limits()) == Refusal(OutcomeCode.TOO_LARGE)


@pytest.mark.requirement("R-094")
@given(
    JSON
    | st.lists(JSON | st.dictionaries(st.sampled_from(["uri", "text"]), JSON)).map(
        lambda entries: {"contents": entries}
    )
)
def test_what_is_handed_on_can_always_be_sent(raw):
    contents = parse_contents(raw, Limits())
    if isinstance(contents, Contents):
        json.dumps(contents.entries, ensure_ascii=False).encode()


@pytest.mark.requirement("R-162")
def test_contents_do_not_print_their_text():
    assert "secret" not in repr(parse_contents(result(text("secret")), Limits()))


@pytest.mark.requirement("R-103")
def test_every_refusal_has_its_code_and_words_for_people():
    for code in OutcomeCode:
        refusal = Refusal(code)
        assert refusal.message.endswith(".")
        assert refusal.size_bytes == 0
