"""A URI as sets of positions, for matching without backtracking.

A set of positions is one integer: bit n stands for "the first n characters are consumed". A step of
the matching moves all positions at once, in a few operations on integers of the URI's length, so
hostile text costs what friendly text of its length costs.
Source: Cameron et al., "Bitwise Data Parallelism in Regular Expression Matching" (2014), MatchStar.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from .characters import ENCODED, PASSED, RESERVED, SCHEME, UNRESERVED

MAX_URI_CHARS: Final = 16_384
"""No template owns a longer URI. Twice the 8 000 octets that RFC 9110 4.1 asks everyone to take."""

_CACHED_URIS: Final = 64  # Twice `maxUris`: one call's URIs, each tried on every template.

_POSSIBLE: Final = re.compile(rf"(?:[{re.escape(UNRESERVED + RESERVED)}]++|%[0-9A-Fa-f]{{2}})*+")

# A layer is the URI with a code for every character of a triplet: what starts there, and how many
# octets it has. The codes are no ASCII, so a layer's hex digits are never taken for letters.
_ENCODED: Final = ("", "\x81", "\x82", "\x83", "\x84")
_NEXT_OCTET, _INSIDE, _STRAY_OCTET, _INSIDE_STRAY = "\x90", "\x91", "\x92", "\x93"
_STARTS: Final = "".join(_ENCODED)
_OCTETS: Final = _STARTS + _NEXT_OCTET + _STRAY_OCTET
_BETWEEN: Final = _INSIDE + _INSIDE_STRAY
_PLAIN: Final = UNRESERVED + _STARTS
_REST: Final = _NEXT_OCTET + _INSIDE

_RAW, _STRICT, _LENIENT = range(3)  # The layers: without codes, for `{id}`, for `{+path}`.
_TRIPLETS: Final = {
    _STRICT: re.compile(rf"({ENCODED})|%.."),
    _LENIENT: re.compile(rf"({PASSED})|%.."),
}

# Where a character of a value stands, and how many characters of the URI it takes.
Steps = list[tuple[int, int]]


class Positions:
    """One URI, and the sets of positions in it that were asked for.

    `text` has the scheme in lower case; `end` is the set of the URI's end alone.
    Threads may share one: a set that two of them make is the same set.
    """

    __slots__ = (
        "_bounds",
        "_has_triplets",
        "_layers",
        "_runs",
        "_scheme",
        "_sets",
        "_tokens",
        "end",
        "text",
        "uri",
    )

    def __init__(self, uri: str) -> None:
        scheme = SCHEME.match(uri)
        in_scheme = scheme.end() if scheme else 0
        self.uri = uri
        self.text = uri[:in_scheme].lower() + uri[in_scheme:]
        self.end = 1 << len(uri)
        self._scheme = (1 << in_scheme) - 1
        self._layers = {_RAW: _reversed(self.text)}
        self._sets: dict[tuple[int, str], int] = {}
        self._runs: dict[str, tuple[int, int]] = {}
        # `tokens`: no template splits a triplet. `bounds`: `{id}` splits no character either.
        self._tokens = self._bounds = (self.end << 1) - 1
        self._has_triplets = "%" in uri
        if self._has_triplets:
            self._tokens ^= self._where(_BETWEEN)
            self._bounds = self._tokens ^ self._where(_NEXT_OCTET)

    def after_text(self, starts: int, text: str) -> int:
        """After `text`, where it stands at one of `starts`."""
        if starts.bit_count() == 1 and self.text.startswith(text, starts.bit_length() - 1):
            return starts << len(text)
        for character in text:
            if not starts:
                return 0
            starts = (starts & self._where_literal(character)) << 1
        return starts

    def after_encoded(self, starts: int, extra: str) -> int:
        """After any number of unreserved, encoded and `extra` characters."""
        run = self._runs.get(extra)
        if run is None:
            first = self._where(_PLAIN + extra)
            run = first, first | self._where(_REST) if self._has_triplets else first
            self._runs[extra] = run
        return flood(starts & run[0], run[1]) & self._bounds | starts

    def after_anything(self, starts: int) -> int:
        """After any number of characters and triplets of any kind."""
        return self._tokens & -(starts & -starts)

    def after_steps(self, starts: int, steps: Steps, least: int, most: int) -> int:
        """After so many steps, at least 0 or 1."""
        frontier = starts
        reached = 0 if least else starts
        for _ in range(most):
            moved = 0
            for where, width in steps:
                moved |= (frontier & where) << width
            frontier = moved & ~reached
            if not frontier:
                break
            reached |= frontier
        return reached

    def between(self, separators: int, ends: int, starts: int) -> int:
        """Those of the `separators` that a list reaches from `starts`, item by item.

        ends: the separators where an item ends that began right after the separator before.
        No item holds a separator, so a list goes on until the first separator outside `ends`.
        """
        passable = (self.end - 1) & ~(separators & ~ends)
        return (flood((starts & separators) << 1, passable) & ends) | (starts & separators)

    def separators(self, separator: str) -> int:
        return self._where(separator)

    def strict_steps(self) -> Steps:
        """The characters of a value without reserved ones."""
        encoded = [(self._where(_ENCODED[octets]), 3 * octets) for octets in (1, 2, 3, 4)]
        return [step for step in ((self._where(UNRESERVED), 1), *encoded) if step[0]]

    def lenient_steps(self) -> Steps:
        """The characters of a value under + and #, which pass on the triplets that it holds.

        RFC 6570 3.2.1 counts triplets that make up one character as one; a value may also hold
        only a part of them.
        """
        single = (self._where(UNRESERVED + RESERVED), 1), (self._where(_OCTETS), 3)
        longer = [(self._where(_ENCODED[octets], _LENIENT), 3 * octets) for octets in (2, 3, 4)]
        return [step for step in (*single, *longer) if step[0]]

    def _where_literal(self, character: str) -> int:
        found = self._where(character, _RAW)
        if self._scheme and character.isupper():
            found |= self._where(character.lower(), _RAW) & self._scheme
        return found

    def _where(self, characters: str, layer: int = _STRICT) -> int:
        """Where one of these characters or codes stands in a layer of the URI."""
        if not self._has_triplets:
            layer = _RAW
        found = self._sets.get((layer, characters))
        if found is None:
            if layer not in self._layers:
                self._layers[layer] = _reversed(_TRIPLETS[layer].sub(_coded, self.text))
            found = int(b"0" + self._layers[layer].translate(_table(characters)), 2)
            self._sets[layer, characters] = found
        return found


@lru_cache(maxsize=_CACHED_URIS)
def positions_of(uri: str) -> Positions | None:
    """None for text with a character or an escape that no expansion contains.

    uri: at most MAX_URI_CHARS, because the latest ones are kept.
    """
    return Positions(uri) if _POSSIBLE.fullmatch(uri) else None


def flood(starts: int, through: int) -> int:
    """The positions reached from `starts` over any number of characters that stand in `through`."""
    return (((starts & through) + through) ^ through) | starts


def _coded(triplets: re.Match[str]) -> str:
    octets = len(triplets[0]) // 3
    if triplets[1] is None:
        return _STRAY_OCTET + 2 * _INSIDE_STRAY
    return _ENCODED[octets] + 2 * _INSIDE + (octets - 1) * (_NEXT_OCTET + 2 * _INSIDE)


def _reversed(text: str) -> bytes:
    # The first character becomes the lowest bit.
    return text[::-1].encode("latin-1")


@lru_cache(maxsize=256)
def _table(characters: str) -> bytes:
    return bytes(ord("1") if chr(octet) in characters else ord("0") for octet in range(256))
