"""An example URI that two templates both own: a search in the product of their automata.

The search finds shortest examples first; variables named as in the template read better, so those
are tried before. Source: architecture, "overlaps"; D-R7 (what an admin has to settle).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

import uritemplate
from uritemplate.variable import VariableValueDict

from .automaton import COLON, IN_SCHEME, LOWER, Automaton, any_case, symbols_in
from .ownership import owns
from .template import Expression, Template

MAX_VISITS: Final = 50_000
"""Pairs of states that a search looks at. Templates that people write need some hundreds."""

_WAYS_WITH_SAME_NAMES: Final = 20


def overlap(a: Template, b: Template) -> str | None:
    """A URI that both templates own; None if there is none.

    Variables stand as their own names where that will do (`crm://signals/id`), else the URI is a
    shortest one. Exact, except that a search ends after MAX_VISITS, and that for a template which
    uses a name twice only some values are tried.
    """
    shared = min(len(a.start), len(b.start))
    if a.start[:shared] != b.start[:shared]:
        return None
    for template in (a, b):
        example = uritemplate.expand(template.text, _names(template))
        if owns(a, example) and owns(b, example):
            return example
    return next((uri for uri in _shared(a, b) if owns(a, uri) and owns(b, uri)), None)


def _names(template: Template) -> VariableValueDict:
    return {
        variable.name: variable.name
        for part in template.parts
        if isinstance(part, Expression)
        for variable in part.variables
    }


class _Stage(NamedTuple):
    """How far a search has read: two states, and whether the scheme is still being read.

    While it is, letters of either case are one letter (D-R10). Which of the two holds for a URI is
    not known before its colon, so a search starts with both.
    """

    a: int
    b: int
    scheme: int  # 0: not in one. 1: before its first letter. 2: after it.


class _Reading(NamedTuple):
    stage: _Stage
    uri: str


def _shared(a: Template, b: Template) -> Iterator[str]:
    """URIs that both own if names used twice are disregarded, shortest first.

    One is enough then; with such names the same stage is reached in several ways, and symbols of
    literals are tried too, because a value may have to equal one.
    """
    automata = Automaton(a), Automaton(b)
    ways, special = 1, 0
    if a.anchors or b.anchors:
        ways, special = _WAYS_WITH_SAME_NAMES, automata[0].literals | automata[1].literals
    visits: Counter[_Stage] = Counter()
    left = MAX_VISITS
    level = [_Reading(_Stage(0, 0, scheme), "") for scheme in (1, 0)]
    while level:
        longer: list[_Reading] = []
        seen: set[_Reading] = set()
        for reading in level:  # Grows by what is reached without reading a symbol.
            if reading in seen or visits[reading.stage] == ways:
                continue
            if not left:
                return
            left -= 1
            seen.add(reading)
            visits[reading.stage] += 1
            if reading.stage == (automata[0].end, automata[1].end, 0):
                yield reading.uri
            level += _silent(automata, reading)
            longer += _read_on(automata, reading, special)
        level = longer


def _silent(automata: tuple[Automaton, Automaton], reading: _Reading) -> Iterator[_Reading]:
    (a, b, scheme), uri = reading
    for label, target in automata[0].arcs(a):
        if not label:
            yield _Reading(_Stage(target, b, scheme), uri)
    for label, target in automata[1].arcs(b):
        if not label:
            yield _Reading(_Stage(a, target, scheme), uri)


def _read_on(
    automata: tuple[Automaton, Automaton], reading: _Reading, special: int
) -> Iterator[_Reading]:
    (a, b, scheme), uri = reading
    for label_a, after_a in automata[0].arcs(a):
        for label_b, after_b in automata[1].arcs(b):
            both = label_a & label_b
            if scheme == 2 and both & COLON:
                yield _Reading(_Stage(after_a, after_b, 0), uri + ":")
            if scheme:
                both = any_case(label_a) & any_case(label_b) & (LOWER if scheme == 1 else IN_SCHEME)
            for symbol in symbols_in(both, special):
                yield _Reading(_Stage(after_a, after_b, 2 if scheme else 0), uri + symbol)
