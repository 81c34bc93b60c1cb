"""Facets: which servers have them, which resources they are, and what a read counted.

Pure. Everything here comes from a server and is untrusted. Source: Facets, version 1.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Final, NoReturn

from connectors.protocol.identifiers import FACETS
from connectors.protocol.text import flatten, is_blank, is_encodable, shorten

__all__ = [
    "Facet",
    "InvalidRead",
    "Level",
    "Skipped",
    "advertises_facets",
    "flatten",
    "parse_count",
    "parse_listing",
    "parse_read",
]

MAX_TEXT_CHARS: Final = 20_000
"""A uri, name or title past this is no label or address any more; ours, not the specification's."""

MAX_COUNT_CHARS: Final = 1_048_576
"""A count takes a few characters; the rest is room for the members that version 1 ignores."""

_MEDIA_TYPE: Final = "application/json"


class Level(StrEnum):
    """How urgent a count above zero is, the most urgent first."""

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


class InvalidRead(StrEnum):
    """Why a read gave no count, in words for the connector's page."""

    NOT_A_RESULT = "the answer is not a finished resources/read result"
    EMPTY = "the answer has no contents"
    SEVERAL = "the answer has more than one content"
    NOT_TEXT = "the content is not text"
    MEDIA_TYPE = "the content's mimeType is not application/json"
    NOT_JSON = "the text is not JSON"
    TOO_LONG = "the text is too long to be a count"
    NOT_AN_OBJECT = "the text is not a JSON object"
    NO_COUNT = "the object has no count"
    NOT_A_COUNT = "the count is not a whole number of 0 or more"


@dataclass(frozen=True, slots=True)
class Facet:
    """One count that a server offers. Its name is its identity within the server."""

    name: str
    uri: str
    title: str
    level: Level


@dataclass(frozen=True, slots=True)
class Skipped:
    """A listing entry that is lost, with its own words cut short and the reason for people."""

    uri: str | None
    name: str | None
    reason: str


class _Unfit(Exception):
    """This marked entry is not a facet; the message is the reason for people."""


def advertises_facets(capabilities: object) -> bool:
    """Say whether a server advertised the extension: its settings must be an object.

    capabilities: the server capabilities as the connection carried them, of either era.
    Source: Facets, "Advertise the extension".
    """
    extensions = capabilities.get("extensions") if isinstance(capabilities, dict) else None
    return isinstance(extensions, dict) and isinstance(extensions.get(FACETS), dict)


def parse_listing(entries: Iterable[object]) -> tuple[list[Facet], list[Skipped]]:
    """Sort the facets out of the entries of a resources/list of a server that advertised them.

    Returns the facets and the lost entries, each in listing order. Ordinary resources are in
    neither. Of several facets with one name the first wins.
    Source: Facets, "List each facet as a resource".
    """
    facets: dict[str, Facet] = {}
    skipped = []
    for entry in entries:
        if not isinstance(entry, dict):
            skipped.append(Skipped(None, None, "the entry is not an object"))
            continue
        meta = entry.get("_meta")
        marker = meta.get(FACETS) if isinstance(meta, dict) else None
        if not isinstance(marker, dict):
            continue
        try:
            facet = _facet_of(entry, marker)
            if facet.name in facets:
                raise _Unfit("an earlier facet of this server has the same name")
        except _Unfit as unfit:
            skipped.append(Skipped(_words(entry, "uri"), _words(entry, "name"), str(unfit)))
        else:
            facets[facet.name] = facet
    return list(facets.values()), skipped


def _facet_of(entry: dict[str, object], marker: dict[str, object]) -> Facet:
    media_type = entry.get("mimeType")
    if media_type != _MEDIA_TYPE:
        # Exact, so that an author learns of a charset suffix here and not from another host.
        given = shorten(media_type) if isinstance(media_type, str) else "not given as text"
        raise _Unfit(f"mimeType must be exactly application/json (it is {given})")
    return Facet(
        name=_identifying(entry, "name"),
        uri=_identifying(entry, "uri"),
        title=flatten(_required(entry, "title")),
        level=_level_of(marker),
    )


def _required(entry: dict[str, object], member: str) -> str:
    value = entry.get(member)
    if not isinstance(value, str):
        raise _Unfit(f"{member} is missing or not text")
    if len(value) > MAX_TEXT_CHARS:
        raise _Unfit(f"{member} is longer than {MAX_TEXT_CHARS} characters")
    if is_blank(value):
        raise _Unfit(f"{member} is blank")
    return value


def _identifying(entry: dict[str, object], member: str) -> str:
    # Kept exactly as it is, so what cannot be sent or stored as it is costs the entry.
    value = _required(entry, member)
    if not is_encodable(value):
        raise _Unfit(f"{member} is not valid Unicode")
    return value


def _level_of(marker: dict[str, object]) -> Level:
    given = marker.get("level")
    return next((level for level in Level if level == given), Level.WARNING)


def _words(entry: dict[str, object], member: str) -> str | None:
    value = entry.get(member)
    return shorten(value) if isinstance(value, str) else None


def parse_read(result: object) -> int | InvalidRead:
    """Read the count out of a raw resources/read result, or say why there is none.

    The entry is looked at as it came: typed results lose a blob that stands beside a text. The
    uri inside may differ from the one asked for, and the mimeType may be absent, because the
    listing has promised it already.
    Source: Facets, "Answer the read with a count".
    """
    if not isinstance(result, dict) or result.get("resultType", "complete") != "complete":
        return InvalidRead.NOT_A_RESULT
    contents = result.get("contents")
    if not isinstance(contents, list) or not contents:
        return InvalidRead.EMPTY
    if len(contents) > 1:
        return InvalidRead.SEVERAL
    content = contents[0]
    text = content.get("text") if isinstance(content, dict) else None
    if not isinstance(text, str) or content.get("blob") is not None:
        return InvalidRead.NOT_TEXT
    if not _is_json(content.get("mimeType")):
        return InvalidRead.MEDIA_TYPE
    return _count_of(text)


def _is_json(media_type: object) -> bool:
    if media_type is None:
        return True
    essence = media_type.partition(";")[0] if isinstance(media_type, str) else ""
    return essence.strip().lower() == _MEDIA_TYPE


def parse_count(text: str) -> int | None:
    """Read the count out of a facet's text content.

    text: JSON as the server sent it, untrusted.
    Returns the count, 0 or more and exact however large; None if this read failed (not JSON, not
    an object, or `count` missing, negative, fractional, or not a number). `3.0` is 3: JSON has
    one number type, with the range of a double, so `1e400` is no number and `1e-400` is 0.
    Source: Facets, "Answer the read with a count".
    """
    count = _count_of(text)
    return None if isinstance(count, InvalidRead) else count


def _count_of(text: str) -> int | InvalidRead:
    if len(text) > MAX_COUNT_CHARS:
        return InvalidRead.TOO_LONG
    try:
        body = json.loads(text, parse_float=_number, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return InvalidRead.NOT_JSON
    if not isinstance(body, dict):
        return InvalidRead.NOT_AN_OBJECT
    if "count" not in body:
        return InvalidRead.NO_COUNT
    count = body["count"]
    # A bool is an int in Python, and true is no count.
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        return InvalidRead.NOT_A_COUNT
    return count


def _number(literal: str) -> int | float:
    """Read a JSON number with a fraction or an exponent: an exact int where it is a whole one.

    A double decides the range first, so that no exponent can ask for a giant integer.
    """
    approximate = float(literal)
    if approximate == 0:
        return 0
    if not approximate.is_integer():
        return approximate
    exact = Decimal(literal)
    whole = int(exact)
    return whole if whole == exact else approximate


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
