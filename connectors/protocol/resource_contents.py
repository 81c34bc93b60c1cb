"""What a read for a resource argument gave: text to hand on, or the code of a refusal.

Pure. Results come from the serving server and are untrusted.
Source: Resource Arguments, "What your tool can receive" and "Errors".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NotRequired, TypedDict, TypeGuard

from connectors.protocol.text import is_encodable

MAX_FRAME_CHARS: Final = 262_144
"""uri and mimeType of one resource's entries: the specification limits only their text, and a
server could otherwise swell another server's call with them. Ours."""

_ENTRY_CHARS: Final = 32


class TextEntry(TypedDict):
    """One entry of contents as it is handed on: these members and no other."""

    uri: str
    text: str
    mimeType: NotRequired[str]


@dataclass(frozen=True, slots=True)
class Limits:
    """max_chars: UTF-16 code units of text in one resource. max_size: bytes in one call."""

    max_chars: int = 49_600
    max_size: int = 10 * 1024 * 1024
    max_uris: int = 32

    @property
    def read_bytes(self) -> int:
        """What each read counts for: no resource of max_chars takes more in UTF-8."""
        return self.max_chars * 3


class OutcomeCode(StrEnum):
    """How one string of a call ended. All but ok are codes of the specification."""

    OK = "ok"
    SCHEME_NOT_DECLARED = "scheme_not_declared"
    NOT_FOUND = "not_found"
    AMBIGUOUS = "ambiguous"
    NOT_TEXT = "not_text"
    TOO_LARGE = "too_large"
    OVER_LIMIT = "over_limit"
    RATE_LIMITED = "rate_limited"


_MESSAGES: Final = {
    OutcomeCode.OK: "The resource was read.",
    OutcomeCode.SCHEME_NOT_DECLARED: (
        "This argument does not declare the URI's scheme, so the host did not read it."
    ),
    OutcomeCode.NOT_FOUND: "No connector in this workspace returned this resource.",
    OutcomeCode.AMBIGUOUS: (
        "More than one connector in this workspace serves this URI, so the host read none. "
        "A workspace admin can remove one."
    ),
    OutcomeCode.NOT_TEXT: "The resource is not only text, so the host did not hand it on.",
    OutcomeCode.TOO_LARGE: (
        "The resource is longer than the host hands on, on this and every other call."
    ),
    OutcomeCode.OVER_LIMIT: (
        "This call names more resources than the host reads for one call. Split the call."
    ),
    OutcomeCode.RATE_LIMITED: (
        "This server has used up its resource reads in this workspace for now. Try again later."
    ),
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """A string whose resource does not go with the call. The message is for people."""

    code: OutcomeCode

    @property
    def message(self) -> str:
        """The same words for every cause behind a code: they tell nothing about what exists."""
        return _MESSAGES[self.code]

    @property
    def size_bytes(self) -> int:
        """Nothing is handed on."""
        return 0


@dataclass(frozen=True, slots=True)
class Contents:
    """A resource as it is handed on. size_bytes: its text in UTF-8, for the trace."""

    entries: tuple[TextEntry, ...] = field(repr=False)
    size_bytes: int

    @property
    def code(self) -> OutcomeCode:
        """The one word of a success."""
        return OutcomeCode.OK


def parse_contents(result: object, limits: Limits) -> Contents | Refusal:
    """Read the text out of a raw resources/read result of the owner.

    The entries are looked at as they came: typed results lose a blob that stands beside a text.
    Refusals: not_text for any blob, then not_found for a result that is empty or malformed, then
    too_large.
    Source: Resource Arguments, "What arrives with the call", "The same shape".
    """
    contents = result.get("contents") if isinstance(result, dict) else None
    is_complete = isinstance(result, dict) and result.get("resultType", "complete") == "complete"
    if not is_complete or not isinstance(contents, list) or not contents:
        return Refusal(OutcomeCode.NOT_FOUND)
    if any(isinstance(entry, dict) and entry.get("blob") is not None for entry in contents):
        return Refusal(OutcomeCode.NOT_TEXT)
    entries = []
    chars = frame_chars = 0
    for raw in contents:
        entry = _text_entry(raw)
        if entry is None:
            return Refusal(OutcomeCode.NOT_FOUND)
        chars += utf16_units(entry["text"])
        frame_chars += _ENTRY_CHARS + len(entry["uri"]) + len(entry.get("mimeType", ""))
        entries.append(entry)
    if chars > limits.max_chars or frame_chars > MAX_FRAME_CHARS:
        return Refusal(OutcomeCode.TOO_LARGE)
    return Contents(tuple(entries), sum(len(entry["text"].encode()) for entry in entries))


def _is_sendable(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and is_encodable(value)


def _text_entry(raw: object) -> TextEntry | None:
    if not isinstance(raw, dict):
        return None
    uri, text, media_type = raw.get("uri"), raw.get("text"), raw.get("mimeType")
    # What cannot be encoded cannot travel, and would take the whole call down with it.
    if not _is_sendable(uri) or not _is_sendable(text):
        return None
    if media_type is None:
        return {"uri": uri, "text": text}
    return {"uri": uri, "text": text, "mimeType": media_type} if _is_sendable(media_type) else None


def utf16_units(text: str) -> int:
    """Count the characters of a text as UTF-16 code units.

    Only in this unit is max_chars times 3 the most bytes that a text can take (decision D-R1).
    """
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
