"""Resource arguments: what a tool declares, what one call reads, and what goes with the call.

Pure. Declarations come from servers, arguments and `_meta` from models and outside clients; all
of it is untrusted. The order of the checks is decision D-R16.
Source: Resource Arguments.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypedDict

from connectors.protocol.identifiers import HOST_SCHEMES, RESOURCE_ARGUMENTS
from connectors.protocol.resource_contents import (
    Contents,
    Limits,
    OutcomeCode,
    Refusal,
    TextEntry,
    parse_contents,
)

__all__ = [
    "Contents",
    "Declaration",
    "Limits",
    "OutcomeCode",
    "Owner",
    "OwnerLookup",
    "Read",
    "Refusal",
    "Settings",
    "TextEntry",
    "capability",
    "deliver",
    "parse_contents",
    "parse_declaration",
    "plan_reads",
    "scheme_of",
    "strings_of",
]

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
_URI_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")


class Settings(TypedDict):
    """The extension's settings object in the client's capabilities."""

    maxChars: int
    maxSize: int
    maxUris: int


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
