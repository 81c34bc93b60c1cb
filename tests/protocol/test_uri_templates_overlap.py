"""An overlap is an example that both templates own; none is told only where there is none."""

from __future__ import annotations

import time
from itertools import product

import pytest

from connectors.protocol.uri_templates import overlap, owns, parse


@pytest.mark.requirement("R-052", "R-053", "D8")
@pytest.mark.parametrize(
    ("a", "b", "example"),
    [
        ("crm://signals/{id}", "crm://signals/{key}", "crm://signals/id"),
        ("crm://signals/{id}", "CRM://{kind}/42", "crm://signals/42"),
        ("crm://{kind}/{id}", "crm://signals/{id}", "crm://signals/id"),
        ("crm://signals/{id}", "crm://signals/{id}/notes", None),
        ("crm://signals/{id}", "crm://people/{id}", None),
        ("crm://s{?q}", "crm://s{?r}", "crm://s"),
        ("crm://s{?q}", "crm://s?{r}", None),
        ("crm://s?q={q}", "crm://s?{+r}", "crm://s?q=q"),
        ("crm://caf%C3%A9/{x:1}", "crm://{x:4}/b", "crm://caf%C3%A9/b"),
        ("crm://{x:3}/", "crm://caf%C3%A9/", None),
        ("crm://s{;p:2}", "crm://s;p=", None),
        ("{+uri}", "crm://signals/{id}", "crm://signals/id"),
        ("C{x}://a", "{y}Rm://{z}", "crm://a"),
        ("crm://{x}/{x}", "crm://a/{y}", "crm://a/a"),
    ],
)
def test_an_overlap_is_told_by_an_example(a: str, b: str, example: str | None) -> None:
    assert overlap(parse(a), parse(b)) == example


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("".join(f"{{a{n}*}}{{/b{n}*}}" for n in range(32)) + "!", "{+x}" * 32 + "?"),
        ("{v:9999}!", "{+x:9999}?"),
        ("{x}" * 60 + "!", "{y}" * 60 + "?"),
    ],
)
def test_the_search_for_an_overlap_of_hostile_templates_ends(a: str, b: str) -> None:
    began = time.thread_time()
    assert overlap(parse(a), parse(b)) is None
    assert time.thread_time() - began < 5


SMALL = [
    *(
        "a/{x}",
        "a{/x*}",
        "{x}/b",
        "{x}b{y}",
        "{+x}b",
        "b{+x:1}",
        "{x:1}/{y:2}",
        "a/b",
        "{x}",
        "ab{x}",
    ),
    *(
        "{x,y}",
        "{/x,y}",
        "a:{x}",
        "A:{+x}",
        "{x}:b",
        "/{x}/",
        "{x}/{x}",
        "{x:1}{x}",
        "{;a*}",
        "{;b}",
    ),
]


@pytest.mark.requirement("R-067")
def test_an_overlap_is_owned_by_both_and_none_means_that_there_is_none() -> None:
    words = ["".join(word) for length in range(6) for word in product("ab/:;", repeat=length)]
    owned = {template: {uri for uri in words if owns(parse(template), uri)} for template in SMALL}
    for a, b in product(SMALL, repeat=2):
        example = overlap(parse(a), parse(b))
        if example is None:
            assert not owned[a] & owned[b], (a, b)
        else:
            assert owns(parse(a), example) and owns(parse(b), example), (a, b, example)
