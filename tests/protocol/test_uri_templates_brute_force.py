"""On small alphabets, a template owns exactly what some assignment of its variables expands to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import product

import pytest

from connectors.protocol.uri_templates import owns, parse
from tests.protocol.uri_templates_reference import UNRESERVED, Value, expansions

pytestmark = pytest.mark.requirement("R-070", "R-075", "R-076", "R-077", "D9")


def words(symbols: Sequence[str], longest: int) -> list[str]:
    return [
        "".join(chosen)
        for length in range(longest + 1)
        for chosen in product(symbols, repeat=length)
    ]


@cache
def values(symbols: tuple[str, ...], longest: int) -> list[Value]:
    """Every value that can expand to `longest` symbols or fewer."""
    lists = [word.split("|") for word in words((*symbols, "|"), longest)]
    return [None, *words(symbols, longest), *lists, *maps(symbols, longest)]


def maps(symbols: tuple[str, ...], longest: int) -> Iterator[tuple[tuple[str, str], ...]]:
    for word in words((*symbols, "="), longest):
        key, _, value = word.partition("=")
        if "=" in value:
            continue
        yield ((key, value),)
        # At least the separator, and "=" unless the operator drops it.
        for others in maps(symbols, longest - len(word) - 1):
            yield ((key, value), *others)


def assignments(
    template: str, symbols: tuple[str, ...], longest: int
) -> Iterator[dict[str, Value]]:
    names = sorted(set(re.findall(r"[a-z]+(?=[^{}]*\})", template)))
    for chosen in product(values(symbols, longest), repeat=len(names)):
        yield dict(zip(names, chosen, strict=True))


def wrong(
    template: str, alphabet: Sequence[str], symbols: tuple[str, ...], longest: int
) -> dict[str, bool]:
    """The texts on which ownership and expansion differ, with what ownership says."""
    expected = {
        uri
        for assignment in assignments(template, symbols, longest)
        for uri in expansions(template, assignment)
    }
    parsed = parse(template)
    return {
        text: owns(parsed, text)
        for text in words(alphabet, longest)
        if owns(parsed, text) != (text in expected)
    }


def unencoded(template: str, alphabet: Iterable[str]) -> tuple[str, ...]:
    """What a value has to be made of, to expand to something of the alphabet."""
    passes = "+" in template or "{#" in template
    return tuple(symbol for symbol in alphabet if passes or symbol in UNRESERVED)


ONE_VARIABLE = [
    *("{x}", "{x*}", "{x:1}", "{x:2}", "x{x}", "{x}x", "{x}=", "={x*},"),
    *("{.x}", "{.x*}", "{.x:2}", "{/x}", "{/x*}", "{/x:1}", "{/x*}/", "a{/x*}a"),
    *("{;x}", "{;x*}", "{;x:1}", "{;x:2}", ";{;x*}", "{?x}", "{?x*}", "{?x:2}"),
    *("{&x}", "{&x*}", "{&x:1}", "x{&x*}", "{+x}", "{+x*}", "{+x:2}", "{#x}", "{#x*}", "{#x:1}"),
]


@pytest.mark.parametrize("template", ONE_VARIABLE)
def test_one_variable_owns_exactly_its_expansions(template: str) -> None:
    operator = template[template.index("{") + 1]
    separator = {"?": "?", "x": ",", "+": "/"}.get(operator, operator)
    alphabet = dict.fromkeys(["x", "a", "=", ",", separator, "&" if operator == "?" else separator])
    symbols = unencoded(template, alphabet)
    assert wrong(template, list(alphabet), symbols, 4 if operator in "+#." else 5) == {}


TWO_VARIABLES = [
    *("{x}{y}", "{x,y}", "{x,y*}", "{x*,y}", "{x*,y*}", "{x:1,y}", "{x}a{y:1}", "{x}{/y*}"),
    *("{/x,y}", "{/x*,y}", "{.x*}{.y*}", "{;x,y}", "{;x*,y*}", "{?x,y}", "{?x,y*}", "{?x}{&y}"),
    *("{;x:1,y*}", "{+x,y:1}", "{#x:1,y:1}", "{+x:1}{y}"),
]


@pytest.mark.parametrize("template", TWO_VARIABLES)
def test_two_variables_own_exactly_their_expansions(template: str) -> None:
    marks = [mark for mark in "./;?&#" if mark in template] or [","]
    alphabet = ["x", ",", *marks] if "#" in template or "+" in template else ["x", "y", "=", *marks]
    assert wrong(template, list(alphabet), unencoded(template, alphabet), 3) == {}


NAMES_USED_TWICE = [
    *("{x}{x}", "{x}a{x}", "{x}/{x}", "{x:1}{x}", "{x}{x:2}", "{x:1}{x:2}", "{/x,x}", "{/x:1,x}"),
    *("{;x}{x}", "{;x,x}", "{?x}{&x}", "{x}{?x}", "{.x}{x}", "{+x}/{+x}", "{+x}{#x}", "{x}{+x}"),
    *("{x}{y}{x}", "{x}{y}{x}{y}", "{x,y}{x}"),
]


@pytest.mark.parametrize("template", NAMES_USED_TWICE)
def test_a_name_used_twice_has_one_value(template: str) -> None:
    marks = [mark for mark in "./;?&#" if mark in template]
    alphabet = list(dict.fromkeys(["x", "a", ",", "=", *marks]))
    longest = 3 if "y" in template else 4
    assert wrong(template, alphabet, unencoded(template, alphabet), longest) == {}


TRIPLETS = ("a", "%2C", "%2c", "%41", "%C3", "%A9", "%c3", "%a9")


@pytest.mark.parametrize(
    "template", ["{x}", "{x:1}", "{x:2}", "{/x*}", "{x}{y:1}", "a{x}", "%C3{x}", "{?x:1}"]
)
def test_encoded_values_are_upper_case_utf8_of_characters_that_need_it(template: str) -> None:
    assert (
        wrong(template, (*TRIPLETS, "/", "?x=")[: 8 + ("/" in template)], ("a", ",", "é"), 3) == {}
    )


@pytest.mark.parametrize(
    "template", ["{+x}", "{+x:1}", "{+x:2}", "{#x:1}", "{+x:1}%A9", "%c3{+x:1}", "{+x:1}{y}"]
)
def test_reserved_expansion_passes_triplets_and_counts_a_character_as_one(template: str) -> None:
    triplets = ("%2C", "%C3", "%A9") if "y" in template else TRIPLETS
    longest = 2 if "y" in template else 3
    assert wrong(template, (*triplets, "#"), (*triplets, "é", "#", ","), longest) == {}


def folded(uri: str) -> str:
    scheme = re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", uri)
    return uri if scheme is None else scheme[0].lower() + uri[scheme.end() :]


@pytest.mark.parametrize(
    "template", ["a:{x}", "A{x}:a", "{x}A:{y}", "aA{+x}", "{+x}", "{x}a", "A:a", ":A{x}"]
)
def test_only_the_scheme_is_compared_without_regard_to_case(template: str) -> None:
    expected = {
        folded(uri)
        for assignment in assignments(template, ("a", "A", ":"), 2)
        for uri in expansions(template, assignment)
    }
    literals = re.sub(r"\{.*?\}", "", template)
    for text in words("aA:", len(literals) + 2):
        assert owns(parse(template), text) == (folded(text) in expected), text
