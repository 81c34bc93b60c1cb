"""Whether a template owns a URI."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote, unquote

from .characters import PASSED, RESERVED
from .pieces import Piece, Text
from .positions import MAX_URI_CHARS, Positions, positions_of
from .template import Expression, Template, Variable

MAX_WORK: Final = 1_000_000
"""How much trying of values for names used twice one answer may cost (`_cost`): some 30 ms."""

_CHARACTER: Final = re.compile(rf"{PASSED}|%[0-9A-Fa-f]{{2}}|.", re.DOTALL)
_BARE_PERCENT: Final = re.compile("%(?![0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True)
class _Known:
    """The value of a name used twice, as `anchor` expanded it; None for undefined."""

    anchor: Variable
    expanded: str | None


@dataclass(slots=True)
class _Walk:
    """One walk over a URI; notes where each variable's expansion may start."""

    uri: Positions
    known: dict[str, _Known] = field(default_factory=dict)
    starts: dict[Variable, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Work:
    left: int = MAX_WORK


def owns(template: Template, uri: str) -> bool:
    """Whether some assignment of the template's variables expands to exactly this URI.

    uri: any text, untrusted; with a bad escape or a character that no URI has, none owns it.
    The scheme is compared without regard to case. Takes time linear in the URI's length.
    A name used twice has one value, with two exceptions, where more is owned than expands: names
    that `template.anchors` leaves out, and hostile text on which MAX_WORK runs out. More rather
    than less: a claim too many makes a URI ambiguous, a claim too few hands it to somebody else.
    Source: Resource Arguments, "How the host finds the serving server"; D-R9, D-R10.
    """
    positions = positions_of(uri) if len(uri) <= MAX_URI_CHARS else None
    if (
        positions is None
        or not positions.text.startswith(template.start)
        or not positions.text.endswith(template.tail)
    ):
        return False
    walk = _Walk(positions)
    return _reaches_end(template, walk) and (
        not template.anchors or _agrees(template, walk, _Work())
    )


def _reaches_end(template: Template, walk: _Walk) -> bool:
    reached = 1 << len(template.start)
    for part in template.parts:
        if isinstance(part, Text):
            reached = part.after(walk.uri, reached)
        else:
            reached = _after_expression(part, walk, reached)
        if not reached:
            return False
    return bool(reached & walk.uri.end)


def _after_expression(expression: Expression, walk: _Walk, none: int) -> int:
    """none: the positions as long as no variable of the expression is defined."""
    uri, operator, some = walk.uri, expression.operator, 0
    for variable in expression.variables:
        known = walk.known.get(variable.name)
        if known:
            if known.expanded is None:
                continue
            if variable.prefix and "," in known.expanded:
                return 0  # RFC 6570 2.4.1: lists and maps have no prefix.
        starts = uri.after_text(none, operator.first) | uri.after_text(some, operator.separator)
        walk.starts[variable] = starts
        if known:
            none, some = 0, _known_piece(variable, known).after(uri, starts)
        else:
            some |= variable.piece.after(uri, starts)
    return none | some


def _agrees(template: Template, walk: _Walk, work: _Work) -> bool:
    """Whether a walk that reached the end still does with one value per name used twice."""
    anchor = next((use for use in template.anchors if use.name not in walk.known), None)
    if anchor is None:
        return True
    for value in _expansions(anchor, walk):
        work.left -= _cost(template, walk.uri, value)
        if work.left < 0:
            return True
        narrowed = _Walk(walk.uri, {**walk.known, anchor.name: _Known(anchor, value)})
        if _reaches_end(template, narrowed) and _agrees(template, narrowed, work):
            return True
    return False


def _cost(template: Template, uri: Positions, value: str | None) -> int:
    """The operations of a walk with this value at the most, in integers of 64 bytes."""
    per_step = 1 + len(uri.text) // 512
    return template.variable_count * (10 + len(value or "")) * per_step


def _expansions(anchor: Variable, walk: _Walk) -> Iterator[str | None]:
    """What the anchor may have expanded to in this walk, without name and "="."""
    yield None
    starts = walk.starts.get(anchor, 0)
    while starts:
        start = starts & -starts
        starts ^= start
        ends = anchor.piece.after(walk.uri, start)
        while ends:
            end = ends & -ends
            ends ^= end
            expanded = walk.uri.uri[start.bit_length() - 1 : end.bit_length() - 1]
            if anchor.operator.is_named:
                expanded = expanded[len(anchor.name) :].removeprefix("=")
            yield expanded


def _known_piece(variable: Variable, known: _Known) -> Piece:
    expanded = known.expanded or ""
    if not known.anchor.operator.is_reserved:
        if variable.operator.is_reserved:
            expanded = ",".join(_reserved(unquote(item)) for item in expanded.split(","))
        if variable.prefix:
            expanded = "".join(_CHARACTER.findall(expanded)[: variable.prefix])
    return variable.written(Text(expanded), may_be_empty=not expanded)


def _reserved(value: str) -> str:
    """Expand a value under + or #, where triplets pass (RFC 6570 3.2.3)."""
    return quote(_BARE_PERCENT.sub("%25", value), safe=RESERVED + "%")
