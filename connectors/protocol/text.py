"""Text of strangers, made fit to show and to store. Pure."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_GAPS: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
_LONE_SURROGATES: Final = re.compile(r"[\ud800-\udfff]")


def flatten(text: str) -> str:
    """Give a text as one line: white space and control characters collapse to single spaces.

    Lone surrogates, which no encoding can carry, become U+FFFD. Direction marks stay: the page
    isolates them.
    """
    return _LONE_SURROGATES.sub("\ufffd", _GAPS.sub(" ", text).strip())


def shorten(text: str, max_chars: int = 200) -> str:
    """Give a text as one line of at most max_chars characters, for a reason or a log line."""
    flat = flatten(text[: 4 * max_chars])
    return flat if len(flat) <= max_chars else flat[: max_chars - 1] + "…"


def is_blank(text: str) -> bool:
    """Say whether a text shows nothing: only separators, controls and invisible characters."""
    return all(unicodedata.category(character)[0] in "ZC" for character in text)


def is_encodable(text: str) -> bool:
    """Say whether UTF-8 can carry a text: a lone surrogate out of a JSON escape cannot travel."""
    return text.isascii() or _LONE_SURROGATES.search(text) is None


def is_storable(text: str) -> bool:
    """Say whether every database takes a text: PostgreSQL takes no NUL, and none half a pair."""
    return "\x00" not in text and is_encodable(text)
