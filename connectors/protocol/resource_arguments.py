"""Resource arguments: what a tool declares, what one call reads, and what goes with the call.

Pure. Declarations and results come from servers, arguments and `_meta` from models and outside
clients; all of it is untrusted. The order of the checks is decision D-R16.
Source: Resource Arguments.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NotRequired, TypedDict, TypeGuard

from connectors.protocol.identifiers import HOST_SCHEMES, RESOURCE_ARGUMENTS
from connectors.protocol.text import is_encodable

MAX_FRAME_CHARS: Final = 262_144
"""uri and mimeType of one resource's entries: the specification limits only their text, and a
server could otherwise swell another server's call with them. Ours."""

_ENTRY_CHARS: Final = 32
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
_URI_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")


class Settings(TypedDict):
    """The extension's settings object in the client's capabilities."""

    maxChars: int
    maxSize: int
    maxUris: int


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


@dataclass(frozen=True, slots=True)
class Owner:
    """The one connector of the workspace that serves a URI."""

    connector_id: int


@dataclass(frozen=True, slots=True)
class Read:
    """A read to make: uri is the string of the call, to be sent exactly so."""

    uri: str
    owner: Owner


Declaration = Mapping[str, frozenset[str]]
"""Argument name to the schemes accepted in it, in lower case and never empty."""

OwnerLookup = Callable[[str], Owner | Refusal]
"""Finds the owner of a URI, or refuses it as not_found or ambiguous."""


def capability(limits: Limits) -> Settings:
    """Give the settings that the host advertises on a workspace connector's connection."""
    return {
        "maxChars": limits.max_chars,
        "maxSize": limits.max_size,
        "maxUris": limits.max_uris,
    }


def parse_declaration(meta: object) -> dict[str, frozenset[str]]:
    """Read which arguments of a tool hold URIs of which schemes; empty if it declares none.

    meta: the tool's `_meta`. An argument without a valid scheme declares nothing; the valid ones
    of a partly valid list count.
    Source: Resource Arguments, "Declare which arguments hold URIs".
    """
    marker = meta.get(RESOURCE_ARGUMENTS) if isinstance(meta, dict) else None
    arguments = marker.get("arguments") if isinstance(marker, dict) else None
    if not isinstance(arguments, dict):
        return {}
    declared = {
        name: _schemes_of(argument)
        for name, argument in arguments.items()
        if isinstance(name, str) and isinstance(argument, dict)
    }
    return {name: schemes for name, schemes in declared.items() if schemes}


def _schemes_of(argument: dict[str, object]) -> frozenset[str]:
    schemes = argument.get("schemes")
    return frozenset(
        scheme.lower()
        for scheme in (schemes if isinstance(schemes, list) else [])
        if isinstance(scheme, str) and _SCHEME.fullmatch(scheme)
    )


def scheme_of(string: str) -> str | None:
    """Give a string's URI scheme in lower case, None if it has none."""
    found = _URI_SCHEME.match(string)
    return found[1].lower() if found else None


def strings_of(declaration: Declaration, arguments: object) -> dict[str, bool]:
    """Find the distinct strings of the declared arguments, in the order of the call.

    arguments: of the tools/call; a declared one counts as a string or through the direct string
    members of an array. Strings stay exactly as they are.
    Returns each string with whether some argument that holds it declares its scheme.
    """
    strings: dict[str, bool] = {}
    for schemes, string in _declared_strings(declaration, arguments):
        strings[string] = strings.get(string, False) or scheme_of(string) in schemes
    return strings


def _declared_strings(
    declaration: Declaration, arguments: object
) -> Iterator[tuple[frozenset[str], str]]:
    for name, value in arguments.items() if isinstance(arguments, dict) else ():
        schemes = declaration.get(name)
        if schemes is None:
            continue
        for member in value if isinstance(value, list) else [value]:
            if isinstance(member, str):
                yield schemes, member


def plan_reads(
    declaration: Declaration,
    arguments: object,
    limits: Limits,
    *,
    is_reachable: bool,
    owner_of: OwnerLookup,
) -> dict[str, Read | Refusal]:
    """Decide for each string of a call whether it is read and from whom, in the call's order.

    is_reachable: whether the agent's own read reaches connectors in this call (`tools.reaches`).
    owner_of is asked at most max_uris times, however many strings there are. The budget is not
    known here: the shell refuses a Read as rate_limited when it is spent.
    Source: Resource Arguments, "Errors"; decisions D-R4 to D-R6 and D-R16.
    """
    plan: dict[str, Read | Refusal] = {}
    named = size_bytes = 0
    for string, is_declared in strings_of(declaration, arguments).items():
        if not is_declared:
            plan[string] = Refusal(OutcomeCode.SCHEME_NOT_DECLARED)
            continue
        if not is_reachable:
            plan[string] = Refusal(OutcomeCode.NOT_FOUND)
            continue
        named += 1
        if named > limits.max_uris:
            plan[string] = Refusal(OutcomeCode.OVER_LIMIT)
            continue
        found = _owner(string, owner_of)
        if isinstance(found, Refusal):
            plan[string] = found
        elif size_bytes + limits.read_bytes > limits.max_size:
            plan[string] = Refusal(OutcomeCode.OVER_LIMIT)
        else:
            size_bytes += limits.read_bytes
            plan[string] = Read(string, found)
    return plan


def _owner(uri: str, owner_of: OwnerLookup) -> Owner | Refusal:
    if scheme_of(uri) in HOST_SCHEMES:
        return Refusal(OutcomeCode.NOT_FOUND)
    return owner_of(uri)


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


def deliver(meta: object, entries: Mapping[str, Contents | Refusal]) -> dict[str, object]:
    """Give the `_meta` of a tools/call: the host's key replaced, or removed without entries.

    meta: as the caller supplied it; its other members stay. This is for every call, also of
    tools that declare nothing and of personal connectors: nobody but the host fills in the key.
    """
    delivered = dict(meta) if isinstance(meta, dict) else {}
    delivered.pop(RESOURCE_ARGUMENTS, None)
    if entries:
        delivered[RESOURCE_ARGUMENTS] = {uri: _as_json(entry) for uri, entry in entries.items()}
    return delivered


def _as_json(entry: Contents | Refusal) -> dict[str, object]:
    if isinstance(entry, Contents):
        return {"contents": list(entry.entries)}
    return {"error": {"code": entry.code.value, "message": entry.message}}
