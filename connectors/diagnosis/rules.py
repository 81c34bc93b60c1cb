"""What the specifications ask of a server, and where one does otherwise. Pure.

What counts is decided by `connectors.protocol`; this explains. Everything looked at is untrusted.
Source: Facets; Resource Arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from connectors.diagnosis.values import Finding
from connectors.protocol.facets import (
    Facet,
    InvalidRead,
    Level,
    advertises_facets,
    parse_listing,
    parse_read,
)
from connectors.protocol.identifiers import FACETS, HOST_SCHEMES
from connectors.protocol.resource_arguments import scheme_of
from connectors.protocol.text import shorten
from connectors.protocol.uri_templates import BadTemplate, parse
from connectors.sessions import Listed

EXPECTED: Final = (
    'What is expected: one text content with the mimeType application/json, such as {"count": 3}.'
)
QUICK_SECONDS: Final = 1
"""A count should be one query; a read that takes longer than this gets a note. Ours."""


def in_capabilities(capabilities: Mapping[str, object]) -> Iterator[Finding]:
    """How a server advertises facets. Source: Facets, "Advertise the extension"."""
    extensions = capabilities.get("extensions")
    if extensions is not None and not isinstance(extensions, dict):
        yield Finding("“extensions” is not an object, so the server advertises nothing.")
        return
    names = extensions or {}
    if advertises_facets(capabilities):
        if not isinstance(capabilities.get("resources"), dict):
            yield Finding(
                f"{FACETS} is advertised without the resources capability, so nothing is listed. "
                "Declare “resources”: {}."
            )
    elif FACETS in names:
        yield Finding(f"The settings of {FACETS} are not an object. Advertise it with {{}}.")
    experimental = capabilities.get("experimental")
    if isinstance(experimental, dict) and FACETS in experimental:
        yield Finding(f"{FACETS} is under “experimental”. It belongs under “extensions”.")
    for name in names:
        if name != FACETS and name.lower().startswith(FACETS):
            yield Finding(f"{shorten(name)} is not {FACETS}: the identifier is compared exactly.")


def in_pages(listed: Listed) -> Iterator[Finding]:
    """How whole a listing of any kind is."""
    if listed.cut_short is not None:
        yield Finding(
            f"The listing was cut short: {listed.cut_short}. The rest is not used. The last page "
            "has no nextCursor, and each other page a new one."
        )
    if listed.unreadable:
        yield Finding(f"{listed.unreadable} entries hold what cannot be stored, and are left out.")


def in_resources(entries: list[object], *, is_advertised: bool) -> Iterator[Finding]:
    """How a server lists its facets. Source: Facets, "List each facet as a resource"."""
    facets, skipped = parse_listing(entries)
    if facets and not is_advertised:
        marked = "1 entry is" if len(facets) == 1 else f"{len(facets)} entries are"
        yield Finding(
            f"{marked} marked as a facet, but the server does not advertise {FACETS}, so that is "
            f"an ordinary resource to the host. Put it under “extensions” of the capabilities."
        )
    for each in skipped:
        named = each.name or each.uri
        yield Finding(f"Left out{f': “{named}”' if named else ''}: {each.reason}.")
    in_markers = [finding for entry in entries for finding in _in_marker(entry)]
    yield from in_markers
    if is_advertised and not (facets or skipped or in_markers):
        yield Finding("The server advertises facets and lists none.", None, is_failure=False)


def _in_marker(entry: object) -> Iterator[Finding]:
    meta = entry.get("_meta") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or not isinstance(meta, dict) or FACETS not in meta:
        return
    named, marker = _named(entry), meta[FACETS]
    if not isinstance(marker, dict):
        yield Finding(
            f"The value of {FACETS} in the _meta of {named} is not an object, so that is an "
            "ordinary resource to the host. Mark it with {}."
        )
    elif "level" in marker and marker["level"] not in list(Level):
        yield Finding(
            f"The level of {named} is none of critical, warning and info: it is read as warning.",
            is_failure=False,
        )


def in_templates(entries: Iterable[object]) -> Iterator[Finding]:
    """Which resource templates claim nothing. Source: Resource Arguments, "How the host finds"."""
    for entry in entries:
        text = entry.get("uriTemplate") if isinstance(entry, dict) else None
        if not isinstance(text, str):
            yield Finding("A template claims no URIs: uriTemplate is missing or not text.")
            continue
        try:
            parse(text)
        except BadTemplate as bad:
            yield Finding(
                f"“{shorten(text)}” cannot be used and claims no URIs: {bad}. A template is "
                "written like crm://signals/{id} (RFC 6570)."
            )
            continue
        scheme = scheme_of(text)
        if scheme in HOST_SCHEMES:
            yield Finding(
                f"“{shorten(text)}” claims no URIs: {scheme}:// belongs to the host.",
                is_failure=False,
            )
        elif scheme is None:
            yield Finding(
                f"“{shorten(text)}” has no scheme of its own and claims the URIs of every other "
                "server, which makes them ambiguous.",
                is_failure=False,
            )


def in_read(
    facet: Facet, result: Mapping[str, object], seconds: float
) -> tuple[int | None, list[Finding]]:
    """The count in a read, if it holds one. Source: Facets, "Answer the read with a count"."""
    count = parse_read(result)
    if isinstance(count, InvalidRead):
        return None, [Finding(f"The read fails: {count.value}. {EXPECTED}")]
    findings = []
    contents = result["contents"]
    if isinstance(contents, list) and contents[0].get("mimeType") is None:
        words = "The content has no mimeType; say application/json."
        findings.append(Finding(words, is_failure=False))
    if seconds > QUICK_SECONDS:
        words = f"A read of more than {QUICK_SECONDS} s: count at the source, with one query."
        findings.append(Finding(words, is_failure=False))
    return count, findings


def _named(entry: dict[str, object]) -> str:
    name = entry.get("name")
    return f"“{shorten(name)}”" if isinstance(name, str) else "an entry without a name"
