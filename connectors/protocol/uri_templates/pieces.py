"""The pieces that a template's expansions are made of.

Each piece is a set of texts. `after` moves positions in a URI over every text of the set at once;
the search for overlaps (overlap.py) reads the same pieces.
"""

from __future__ import annotations

from dataclasses import dataclass

from .positions import Positions


@dataclass(frozen=True, slots=True)
class Text:
    """This text alone."""

    text: str

    def after(self, uri: Positions, starts: int) -> int:
        return uri.after_text(starts, self.text)


@dataclass(frozen=True, slots=True)
class Value:
    """Any number of a value's characters, unreserved or encoded.

    is_reserved: reserved characters and any triplets too. extra: one more character, which joins
    the items of a list. least, most: for a prefix, how many characters it has.
    """

    is_reserved: bool = False
    extra: str = ""
    least: int = 0
    most: int | None = None

    def after(self, uri: Positions, starts: int) -> int:
        if self.most is not None:
            steps = uri.lenient_steps() if self.is_reserved else uri.strict_steps()
            return uri.after_steps(starts, steps, self.least, self.most)
        if self.is_reserved:
            return uri.after_anything(starts)
        return uri.after_encoded(starts, self.extra)


@dataclass(frozen=True, slots=True)
class Chain:
    """One piece after the other."""

    pieces: tuple[Piece, ...]

    def after(self, uri: Positions, starts: int) -> int:
        for piece in self.pieces:
            starts = piece.after(uri, starts)
        return starts


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the pieces."""

    pieces: tuple[Piece, ...]

    def after(self, uri: Positions, starts: int) -> int:
        ends = 0
        for piece in self.pieces:
            ends |= piece.after(uri, starts)
        return ends


@dataclass(frozen=True, slots=True)
class Joined:
    """The item once or more, with the separator between; no item holds the separator."""

    item: Piece
    separator: str

    def after(self, uri: Positions, starts: int) -> int:
        first = self.item.after(uri, starts)
        separators = uri.separators(self.separator)
        if not first & separators:
            return first
        ends = self.item.after(uri, separators << 1)
        return first | self.item.after(uri, uri.between(separators, ends & separators, first) << 1)


Piece = Text | Value | Chain | Choice | Joined
