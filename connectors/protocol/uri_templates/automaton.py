"""A template as a finite automaton over symbols, for the search in overlap.py.

A symbol is a character or a triplet; a label is a set of symbols, one bit each, and an arc with the
empty label reads nothing. The arcs of a prefix are made when a search comes there, because one of
9 999 characters has as many states.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from itertools import product
from typing import Final

from .characters import RESERVED, UNRESERVED, UTF8
from .pieces import Chain, Choice, Joined, Piece, Text, Value
from .template import Expression, Template

_HEX: Final = "0123456789ABCDEFabcdef"
# In the order of preference for an example: letters first.
_SYMBOLS: Final = (*UNRESERVED, *RESERVED, *(f"%{high}{low}" for high, low in product(_HEX, _HEX)))
_BITS: Final = {symbol: 1 << number for number, symbol in enumerate(_SYMBOLS)}
_SYMBOL: Final = re.compile("%..|.")


def _label(symbols: Iterable[str]) -> int:
    return sum(_BITS[symbol] for symbol in symbols)


LOWER: Final = _label("abcdefghijklmnopqrstuvwxyz")
IN_SCHEME: Final = LOWER | _label("0123456789+-.")
COLON: Final = _BITS[":"]
_TO_UPPER: Final = UNRESERVED.index("A")


def any_case(label: int) -> int:
    return label | (label & LOWER) << _TO_UPPER | (label >> _TO_UPPER) & LOWER


def symbols_in(label: int, special: int) -> Iterator[str]:
    """The symbol of the label that reads best, and those that are special."""
    wanted = label & -label | label & special
    while wanted:
        bit = wanted & -wanted
        wanted ^= bit
        yield _SYMBOLS[bit.bit_length() - 1]


class Automaton:
    """State 0 is the first, `end` the one after the whole template.

    literals: the symbols of the template's own text.
    """

    def __init__(self, template: Template) -> None:
        self._arcs: list[list[tuple[int, int]]] = []
        self._later: dict[int, Callable[[], None]] = {}
        self.literals = 0
        self.end = self._add(Text(template.start), self._state())
        for part in template.parts:
            if isinstance(part, Expression):
                self.end = self._add_expression(part, self.end)
            else:
                self.end = self._add(part, self.end)

    def arcs(self, state: int) -> list[tuple[int, int]]:
        """(label, next state) of each arc."""
        if make := self._later.pop(state, None):
            make()
        return self._arcs[state]

    def _state(self) -> int:
        self._arcs.append([])
        return len(self._arcs) - 1

    def _arc(self, label: int, start: int, end: int) -> int:
        self._arcs[start].append((label, end))
        return end

    def _join(self, *states: int) -> int:
        end = self._state()
        for state in states:
            self._arc(0, state, end)
        return end

    def _add_expression(self, expression: Expression, none: int) -> int:
        """none: the state as long as no variable is defined."""
        some: int | None = None
        for variable in expression.variables:
            starts = [self._add(Text(expression.operator.first), none)]
            if some is not None:
                starts.append(self._add(Text(expression.operator.separator), some))
            end = self._add(variable.piece, self._join(*starts))
            some = end if some is None else self._join(some, end)
        return none if some is None else self._join(none, some)

    def _add(self, piece: Piece, start: int) -> int:
        """Add the states that read the piece, and give the one after it."""
        match piece:
            case Text(text):
                for symbol in _SYMBOL.findall(text):
                    self.literals |= _BITS[symbol]
                    start = self._arc(_BITS[symbol], start, self._state())
                return start
            case Value(most=None):
                again = self._join(start)
                self._add_character(piece, again, again)
                return again
            case Value():
                end = self._state()
                self._add_prefix(piece, 0, start, end)
                return end
            case Chain(pieces):
                for part in pieces:
                    start = self._add(part, start)
                return start
            case Choice(pieces):
                return self._join(*(self._add(part, start) for part in pieces))
            case Joined(item, separator):
                again = self._join(start)
                end = self._add(item, again)
                self._arc(0, self._add(Text(separator), end), again)
                return end

    def _add_prefix(self, value: Value, length: int, start: int, end: int) -> None:
        if length >= value.least:
            self._arc(0, start, end)
        if length != value.most:
            after = self._state()
            self._add_character(value, start, after)
            self._later[after] = partial(self._add_prefix, value, length + 1, after, end)

    def _add_character(self, value: Value, start: int, end: int) -> None:
        single, longer = _characters(value.is_reserved)
        self._arc(single | _label(value.extra), start, end)
        # Without a limit the octets of a character count for nothing, and `single` has them all.
        if value.is_reserved and value.most is None:
            return
        for labels in longer:
            state = start
            for label in labels[:-1]:
                state = self._arc(label, state, self._state())
            self._arc(labels[-1], state, end)


@lru_cache(maxsize=2)
def _characters(is_reserved: bool) -> tuple[int, list[list[int]]]:
    """A value's characters: those of one symbol, and the symbols of each kind of longer ones."""
    longer = [[_octets(*octet, is_reserved) for octet in octets] for octets in UTF8[1:]]
    if is_reserved:
        return (1 << len(_SYMBOLS)) - 1, longer
    plain = _label(UNRESERVED)
    encoded = _label(f"%{octet:02X}" for octet in range(0x80) if chr(octet) not in UNRESERVED)
    return plain | encoded, longer


def _octets(low: int, high: int, any_digits: bool) -> int:
    triplets = [f"%{octet:02X}" for octet in range(low, high + 1)]
    if not any_digits:
        return _label(triplets)
    return _label(symbol for symbol in _SYMBOLS if symbol[0] == "%" and symbol.upper() in triplets)
