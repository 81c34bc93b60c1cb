"""JSON-RPC bodies as bytes and values. Pure.

The SDK's models reject a whole body for one bad character (S16). Bodies are read with the
standard library instead, and what nobody can store or send on is found entry by entry.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, NoReturn

_SUSPECT = re.compile(rb"\\u[dD][89a-fA-F]|[0-9][eE]\+?[0-9]{3}|(?<![0-9])[0-9]{300}")
"""An escaped surrogate, or a number that a float may not hold. Tried where digits begin alone: from
each of many digits it would take seconds."""

MAX_NESTING = 250
"""Levels of lists and objects; ours. What is nested deeper than that can be read on one stack and
not be written on the next, deeper one: in the middle of a transaction, say."""


@dataclass(frozen=True, slots=True)
class Body:
    """A decoded body. is_suspect: parts of it may not be `is_clean`."""

    value: object
    is_suspect: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of one request, with what is known of the body that it came in."""

    result: dict[str, Any]
    is_suspect: bool
    size_bytes: int


def encode(message: dict[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":"), allow_nan=False).encode()


def decode(raw: bytes) -> Body:
    """Read a peer's body.

    Raises: ValueError when it is no JSON: `NaN`, endless nesting and endless digits included.
    """
    try:
        text, is_unicode = raw.decode(), True
    except UnicodeDecodeError:
        text, is_unicode = raw.decode("utf-8", "surrogateescape"), False
    try:
        value = json.loads(text.removeprefix("\ufeff"), parse_constant=_refuse)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    is_suspect = not is_unicode or _SUSPECT.search(raw) is not None
    may_be_deep = raw.count(b"[") + raw.count(b"{") > MAX_NESTING
    return Body(value, is_suspect or (may_be_deep and _is_deep(value)))


def is_clean(value: object) -> bool:
    """Whether a value can be stored and sent on: all text is Unicode, all numbers are finite, and
    it is not nested deep."""
    if _is_deep(value):
        return False
    try:
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return False
    return True


def _is_deep(value: object) -> bool:
    level = [value]
    for _ in range(MAX_NESTING):
        level = [
            child
            for each in level
            if isinstance(each, dict | list)
            for child in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return False
    return True


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
