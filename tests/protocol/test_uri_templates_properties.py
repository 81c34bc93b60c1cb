"""Ownership and overlaps against `uritemplate`, on templates and values drawn at random."""

from __future__ import annotations

import re

import pytest
import uritemplate
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from uritemplate.variable import VariableValueDict

from connectors.protocol.uri_templates import overlap, owns, parse

TEXT = st.text(st.sampled_from("ab0-._~ %/?#:,;=&!éλ€😀"), max_size=6)
STRING = st.none() | TEXT
ANY_VALUE = STRING | st.lists(TEXT, max_size=3) | st.dictionaries(TEXT, TEXT, max_size=3)
NAMES = [f"n{number}" for number in range(9)] + ["a.b", "%C3%A9", "_"]
POSSIBLE_URI = re.compile(r"(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})*")


Drawn = tuple[str, VariableValueDict]


@st.composite
def templates_with_values(draw: st.DrawFn) -> Drawn:
    parts: list[str] = []
    values: VariableValueDict = {}
    names = iter(draw(st.permutations(NAMES)))
    for operator in draw(st.lists(st.sampled_from(["", *"+#./;?&", "literal"]), max_size=6)):
        if operator == "literal":
            parts.append(draw(st.sampled_from(["/", "a", "crm://", "%2f", ".", "?x=", "n0"])))
            continue
        uses = []
        for _ in range(draw(st.integers(1, 2))):
            name = next(names)
            modifier = draw(st.sampled_from(["", "", "*", ":1", ":3", ":40"]))
            uses.append(name + modifier)
            # A prefix of a list or a map is undefined (RFC 6570 2.4.1).
            values[name] = draw(STRING if ":" in modifier else ANY_VALUE)
        parts.append(f"{{{operator}{','.join(uses)}}}")
    return "".join(parts), values


@pytest.mark.requirement("R-077")
@given(drawn=templates_with_values())
@settings(deadline=None, max_examples=1_000)
def test_every_expansion_by_uritemplate_is_owned(drawn: Drawn) -> None:
    template, values = drawn
    uri = uritemplate.expand(template, values)
    # Under + it leaves everything as it is beside a triplet, and so makes text that is no URI.
    assume(POSSIBLE_URI.fullmatch(uri))
    assert owns(parse(template), uri)
    assert owns(parse(template), re.sub("^crm:", "cRm:", uri))


@given(drawn=templates_with_values(), other=templates_with_values())
@settings(deadline=None, max_examples=60)
def test_any_overlap_is_owned_by_both(drawn: Drawn, other: Drawn) -> None:
    a, b = parse(drawn[0]), parse(other[0])
    uri = uritemplate.expand(*drawn)
    example = overlap(a, b)
    if example is None:
        assert not (owns(a, uri) and owns(b, uri))
    else:
        assert owns(a, example) and owns(b, example)
