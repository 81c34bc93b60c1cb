"""What the resource tools answer: resources as lines, and what was read as text.

Pure. Listings and results come from servers, untrusted.
Source: Resource tools, "One line per resource"; requirements section 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from connectors.protocol.resource_contents import utf16_units
from connectors.protocol.text import flatten


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What every tool gives back, whatever happened: text for a model, and whether it failed."""

    output: str
    is_error: bool = False


def refused(message: str) -> ToolResult:
    return ToolResult(message, is_error=True)


def resource_line(server: str, entry: Mapping[str, object]) -> str:
    """Give one resource as `<server> <uri> — <name> (<mimeType>): <description>`.

    A missing piece takes its punctuation with it (L-005 to L-007), and all of it is one line.
    """
    uri, name, media_type, description = (
        flatten(value) if isinstance(value := entry.get(key), str) else ""
        for key in ("uri", "name", "mimeType", "description")
    )
    line = f"{flatten(server)} {uri}"
    line += f" — {name}" if name else ""
    line += f" ({media_type})" if media_type else ""
    return line + (f": {description}" if description else "")


Listing = Sequence[object] | str
"""The raw resources of one server, or why it could not list them."""


def listed(by_server: Mapping[str, Listing]) -> ToolResult:
    """Give all resources, servers in code point order, each in its own order.

    A server that failed has a line that says so; only if all failed is it an error (D-L2).
    """
    lines = [line for server in sorted(by_server) for line in _lines(server, by_server[server])]
    has_failed = [isinstance(each, str) for each in by_server.values()]
    return ToolResult("\n".join(lines), is_error=bool(has_failed) and all(has_failed))


def _lines(server: str, listing: Listing) -> Iterator[str]:
    if isinstance(listing, str):
        yield f"{flatten(server)}: its resources could not be listed: {flatten(listing)}"
        return
    for entry in listing:
        if isinstance(entry, dict) and isinstance(entry.get("uri"), str):
            yield resource_line(server, entry)


def read_text(result: object) -> ToolResult:
    """Give what a raw resources/read result holds as text, entries joined by one newline.

    A blob is named with its type and size and never shown (D-L3).
    """
    contents = result.get("contents") if isinstance(result, dict) else None
    parts = list(_parts(contents if isinstance(contents, list) else []))
    if not parts:
        return refused("The server returned nothing for this URI.")
    return ToolResult("\n".join(parts))


def _parts(contents: Iterable[object]) -> Iterator[str]:
    for entry in contents:
        if not isinstance(entry, dict):
            continue
        text, blob = entry.get("text"), entry.get("blob")
        if isinstance(text, str):
            yield text
        if isinstance(blob, str):
            media_type = entry.get("mimeType")
            kind = flatten(media_type) if isinstance(media_type, str) else "unknown type"
            yield f"[{kind or 'unknown type'}, {_decoded_bytes(blob):,} bytes: not text, left out]"


def _decoded_bytes(blob: str) -> int:
    digits = len(blob.rstrip("=\r\n"))
    return digits * 3 // 4


def cut(text: str, max_units: int) -> str:
    """Give at most max_units UTF-16 code units of a text, and say so where that is not all."""
    units = utf16_units(text)
    if units <= max_units:
        return text
    kept = text.encode("utf-16-le", "surrogatepass")[: max_units * 2]
    # A pair that the cut would split is left out whole.
    shown = kept.decode("utf-16-le", "ignore")
    return f"{shown}\n\n[Cut: this is the beginning, {max_units:,} of {units:,} characters.]"
