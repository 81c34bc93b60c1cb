"""What a tool answered, made fit to show: text as text, everything else as a line about it.

Pure. Results come from servers, untrusted: the page escapes them, and they are cut.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from connectors.protocol.text import shorten

MAX_PARTS: Final = 50
MAX_SHOWN_CHARS: Final = 20_000
"""Of one part on the page."""

# Controls but tab and line breaks, and lone surrogates.
_UNSHOWABLE: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Part:
    """One block of a result. kind: text, note or json."""

    kind: str
    text: str
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class Shown:
    """A whole result. left_out: how many blocks there are besides those shown."""

    parts: list[Part]
    is_error: bool
    left_out: int = 0


def shown(result: object) -> Shown:
    """Make a raw tools/call result fit to show."""
    if not isinstance(result, dict):
        return failed("The server answered with no tool result.")
    if result.get("resultType", "complete") != "complete":
        return failed("The server wants to ask something first, which does not work through here.")
    content = result.get("content")
    blocks = content if isinstance(content, list) else []
    parts = [_part(block) for block in blocks[:MAX_PARTS]]
    parts += _structured(result)
    if not parts:
        parts = [Part("note", "The result is empty.")]
    return Shown(parts, result.get("isError") is True, max(0, len(blocks) - MAX_PARTS))


def failed(words: str) -> Shown:
    return Shown([Part("note", words)], is_error=True)


def text_only(text: str, *, is_error: bool) -> Shown:
    return Shown([_cut("text", text)], is_error)


def _part(block: object) -> Part:
    match block:
        case {"type": "text", "text": str(text)}:
            return _cut("text", text)
        case {"type": "image" | "audio" as kind, "data": str(data), **rest}:
            what = _type_and_size(rest.get("mimeType"), data)
            return Part("note", f"{str(kind).capitalize()}, {what}: not shown.")
        case {"type": "resource_link", "uri": str(uri)}:
            return Part("note", f"A link to {shorten(uri, 500)}")
        case {"type": "resource", "resource": {"text": str(text), **rest}}:
            named = rest.get("uri")
            heading = f"{shorten(named, 500)}\n" if isinstance(named, str) else ""
            return _cut("text", heading + text)
        case {"type": "resource", "resource": {"blob": str(data), **rest}}:
            what = _type_and_size(rest.get("mimeType"), data)
            return Part("note", f"A resource, {what}: not shown.")
    return Part("note", "Content of a kind that is not known here: not shown.")


def _type_and_size(media_type: object, data: str) -> str:
    kind = shorten(media_type, 100) if isinstance(media_type, str) else "unknown type"
    return f"{kind}, about {len(data) * 3 // 4:,} bytes"


def _structured(result: dict[str, object]) -> Iterator[Part]:
    if isinstance(result.get("structuredContent"), dict):
        yield _cut("json", written(result["structuredContent"]))


def written(value: object) -> str:
    """Give JSON as people read it."""
    try:
        return showable(json.dumps(value, indent=2, ensure_ascii=False))
    except (ValueError, RecursionError):
        return "It is nested too deeply to be shown."


def showable(text: str, max_chars: int = MAX_SHOWN_CHARS) -> str:
    """Give the beginning of a text, its lines kept, without what a page cannot carry."""
    return _UNSHOWABLE.sub("\ufffd", text[:max_chars])


def _cut(kind: str, text: str) -> Part:
    return Part(kind, showable(text), is_cut=len(text) > MAX_SHOWN_CHARS)
