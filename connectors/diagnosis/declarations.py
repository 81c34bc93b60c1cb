"""Why a tool's declaration of resource arguments declares less than its author meant. Pure.

What counts is decided by `protocol.resource_arguments.parse_declaration`; this explains.
Source: Resource Arguments, "Declare which arguments hold URIs".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Final

from connectors.diagnosis.values import Finding
from connectors.protocol.identifiers import HOST_SCHEMES, RESOURCE_ARGUMENTS
from connectors.protocol.resource_arguments import parse_declaration
from connectors.protocol.text import shorten

_SCHEME_AND_MORE: Final = re.compile(r"\s*[A-Za-z][A-Za-z0-9+.-]*:?(//.*)?\s*")


def declaring(entries: Iterable[object]) -> int:
    """How many tools declare a resource argument that counts."""
    return sum(
        isinstance(entry, dict) and bool(parse_declaration(entry.get("_meta"))) for entry in entries
    )


def in_tools(entries: Iterable[object]) -> Iterator[Finding]:
    """Each declaration, or part of one, that declares nothing, and why."""
    for entry in entries:
        if isinstance(entry, dict):
            name = entry.get("name")
            tool = f"“{shorten(name)}”" if isinstance(name, str) else "A tool without a name"
            for words, is_failure in _in_tool(entry):
                yield Finding(f"{tool}: {words}", is_failure=is_failure)


def _in_tool(tool: dict[str, object]) -> Iterator[tuple[str, bool]]:
    meta, schema = tool.get("_meta"), tool.get("inputSchema")
    marker = meta.get(RESOURCE_ARGUMENTS) if isinstance(meta, dict) else None
    if not isinstance(meta, dict) or RESOURCE_ARGUMENTS not in meta:
        if isinstance(schema, dict) and _holds_declaration(schema):
            yield "the declaration is inside inputSchema. It belongs in the tool's _meta.", True
        return
    arguments = marker.get("arguments") if isinstance(marker, dict) else None
    if not isinstance(arguments, dict) or not arguments:
        yield "it declares nothing: “arguments” is missing, empty or not an object.", True
        return
    properties = schema.get("properties") if isinstance(schema, dict) else None
    for name, argument in arguments.items():
        for words, is_failure in _in_argument(name, argument, properties):
            yield f"argument “{shorten(name)}”: {words}", is_failure


def _in_argument(name: str, argument: object, properties: object) -> Iterator[tuple[str, bool]]:
    schemes = argument.get("schemes") if isinstance(argument, dict) else None
    if not isinstance(schemes, list) or not schemes:
        yield "it declares nothing: “schemes” is missing, empty or not a list.", True
        return
    counted = parse_declaration({RESOURCE_ARGUMENTS: {"arguments": {name: argument}}}).get(name)
    for scheme in schemes:
        if not isinstance(scheme, str) or scheme.lower() not in (counted or ()):
            yield f"{_shown(scheme)} is no scheme: {_why_not(scheme)}", True
        elif scheme.lower() in HOST_SCHEMES:
            yield f"“{scheme}” belongs to the host, which does not resolve it yet.", False
    if counted is None:
        yield "it declares nothing, for it has no valid scheme.", True
    elif isinstance(properties, dict):
        yield from _in_schema(name, properties)


def _in_schema(name: str, properties: dict[str, object]) -> Iterator[tuple[str, bool]]:
    """Whether the schema lets the argument hold what a declaration is about."""
    if name not in properties:
        yield "inputSchema has no such property at the top, so no call will have it.", True
        return
    found = properties[name]
    kind = found.get("type") if isinstance(found, dict) else None
    if isinstance(kind, str) and kind not in ("string", "array"):
        words = f"its type is {shorten(kind, 40)}: only a string or a list of strings is read."
        yield words, True


def _why_not(scheme: object) -> str:
    if not isinstance(scheme, str):
        return "it is not text."
    if scheme.strip() == "*":
        return "there is no wildcard."
    if _SCHEME_AND_MORE.fullmatch(scheme):
        return "write its name alone, without white space or “://”."
    return "a scheme is a letter, then letters, digits, +, . and -."


def _shown(value: object) -> str:
    if isinstance(value, str):
        return f"“{shorten(value, 60)}”"
    return shorten(json.dumps(value, default=str), 60)


def _holds_declaration(schema: dict[str, object]) -> bool:
    """In the schema itself or in one of its properties, with or without a _meta around it."""
    properties = schema.get("properties")
    parts = [schema, *(properties.values() if isinstance(properties, dict) else ())]
    for part in parts:
        if isinstance(part, dict):
            meta = part.get("_meta")
            if RESOURCE_ARGUMENTS in part or (
                isinstance(meta, dict) and RESOURCE_ARGUMENTS in meta
            ):
                return True
    return False
