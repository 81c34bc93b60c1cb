"""A tool's input schema as people fill it in, and whether what they filled in fits it.

Pure. A schema comes from a server, untrusted: it may be huge, refer to itself or to addresses, or
hold patterns that take for ever. Nothing is fetched, no pattern of it is run, and the work has an
end; what cannot be judged here is the server's to judge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Any, Final, TypeGuard

from jsonschema import Draft202012Validator, validators
from jsonschema.protocols import Validator
from referencing import Registry

from connectors.protocol.text import shorten

MAX_ARGUMENTS: Final = 60
"""Of one form; a tool with more takes its arguments as one JSON object."""
MAX_CHOICES: Final = 200
MAX_PROBLEMS: Final = 20
MAX_STEPS: Final = 50_000
"""Keywords that are looked at for one set of arguments: about half a second."""
MAX_UNIQUE: Final = 300
"""Members of an array whose uniqueness is checked: that may take their square."""
_MAX_HOPS: Final = 8


class Kind(StrEnum):
    """How an argument is filled in. lines: text, each line a member of an array."""

    TEXT = "text"
    NUMBER = "number"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    CHOICE = "choice"
    LINES = "lines"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a tool. default: None if there is none. is_long: whether text has lines."""

    name: str
    kind: Kind
    title: str
    description: str
    is_required: bool
    default: object = None
    choices: tuple[object, ...] = ()
    is_long: bool = False


@dataclass(frozen=True, slots=True)
class Problem:
    """What does not fit. argument: whose it is, None for the whole."""

    argument: str | None
    words: str


def arguments_in(schema: object) -> list[Argument] | None:
    """Read the arguments out of a schema; None if they are better given as one JSON object."""
    if not isinstance(schema, dict):
        return None
    whole = _resolved(schema, schema)
    properties = whole.get("properties", {})
    if not isinstance(properties, dict) or len(properties) > MAX_ARGUMENTS:
        return None
    if not properties and (schema.keys() & {"anyOf", "oneOf", "allOf", "patternProperties"}):
        return None
    required = whole.get("required")
    needed = {each for each in required if isinstance(each, str)} if _is_list(required) else set()
    return [
        _argument(name, _resolved(part, schema), schema, name in needed)
        for name, part in properties.items()
    ]


def _argument(name: str, part: dict[str, Any], root: dict[str, Any], is_required: bool) -> Argument:
    kind, choices = _kind_of(part, root)
    limit = part.get("maxLength")
    is_short = bool(part.get("format")) or (isinstance(limit, int) and limit <= 100)
    return Argument(
        name=name,
        kind=kind,
        title=_text(part, "title"),
        description=_text(part, "description"),
        is_required=is_required,
        default=part.get("default"),
        choices=choices,
        is_long=kind is Kind.TEXT and not is_short,
    )


def _kind_of(part: dict[str, Any], root: dict[str, Any]) -> tuple[Kind, tuple[object, ...]]:
    choices = [part["const"]] if "const" in part else part.get("enum")
    if _is_list(choices) and 0 < len(choices) <= MAX_CHOICES and all(map(_is_plain, choices)):
        return Kind.CHOICE, tuple(choices)
    kinds = {
        "string": Kind.TEXT,
        "number": Kind.NUMBER,
        "integer": Kind.INTEGER,
        "boolean": Kind.BOOLEAN,
    }
    name = _type_of(part)
    if name == "array" and "prefixItems" not in part:
        members = _resolved(part.get("items"), root)
        if _type_of(members) == "string":
            return Kind.LINES, ()
    return kinds.get(name, Kind.JSON), ()


def _type_of(part: dict[str, Any]) -> str:
    """The one type that a part has besides null; empty if there is not one."""
    named = part.get("type")
    names = [each for each in (named if _is_list(named) else [named]) if each != "null"]
    return names[0] if len(names) == 1 and isinstance(names[0], str) else ""


def _resolved(part: object, root: dict[str, Any]) -> dict[str, Any]:
    """Follow references within the schema, and a choice between null and one other thing."""
    found = part if isinstance(part, dict) else {}
    for _ in range(_MAX_HOPS):
        if isinstance(reference := found.get("$ref"), str):
            deeper = _at(root, reference)
        else:
            deeper = _only_choice(found)
        if deeper is None:
            return found
        # Title, description and default beside the reference say more than those behind it.
        found = deeper | {key: value for key, value in found.items() if key not in _FOLLOWED}
    return {}


_FOLLOWED: Final = frozenset({"$ref", "anyOf", "oneOf"})


def _only_choice(part: dict[str, Any]) -> dict[str, Any] | None:
    for keyword in ("anyOf", "oneOf"):
        if _is_list(choices := part.get(keyword)):
            others = [each for each in choices if each != {"type": "null"}]
            if len(others) == 1 and isinstance(others[0], dict):
                return others[0]
    return None


def _at(root: dict[str, Any], reference: str) -> dict[str, Any] | None:
    """The part that a reference names (RFC 6901), if it is in this schema."""
    if not reference.startswith("#/"):
        return None
    found: Any = root
    for step in reference[2:].split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else None


def _is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, str | int | float)


def _text(part: dict[str, Any], key: str) -> str:
    value = part.get(key)
    return shorten(value, 500) if isinstance(value, str) else ""


def problems_in(schema: object, arguments: dict[str, Any]) -> list[Problem] | None:
    """Say what of the arguments does not fit the schema; None if that cannot be judged here."""
    try:
        errors = list(islice(_bounded(schema).iter_errors(arguments), MAX_PROBLEMS))
    except Exception:
        # A schema may break the validator in any way: wrong types, endless or remote references.
        return None
    return [
        Problem(
            argument=str(error.absolute_path[0]) if error.absolute_path else None,
            words=shorten(error.message),
        )
        for error in errors
    ]


class _TooMuch(Exception):
    """The schema takes more work than anybody waits for."""


def _bounded(schema: object) -> Validator:
    """A validator without patterns, without a network and with an end."""
    named = schema.get("$schema") if isinstance(schema, dict) else None
    dialect = {"$schema": named} if isinstance(named, str) else {}
    base = validators.validator_for(dialect, default=Draft202012Validator)
    left = [MAX_STEPS]

    def counted(check: Callable[..., Any]) -> Callable[..., Iterator[Any]]:
        def bounded(validator: Any, value: Any, instance: Any, within: Any) -> Iterator[Any]:
            left[0] -= 1
            if left[0] < 0:
                raise _TooMuch
            yield from check(validator, value, instance, within) or ()

        return bounded

    keywords: dict[str, Any] = {name: counted(check) for name, check in base.VALIDATORS.items()}
    keywords |= dict.fromkeys(_UNBOUNDED)
    keywords["additionalProperties"] = counted(_without_patterns(keywords["additionalProperties"]))
    keywords["uniqueItems"] = counted(_without_many(keywords["uniqueItems"]))
    extended: Any = validators.extend(base, keywords)  # type: ignore[no-untyped-call]
    # An empty registry fetches nothing; the default one would.
    validator: Validator = extended(schema, registry=Registry())
    return validator


_UNBOUNDED: Final = (
    "pattern",
    "patternProperties",
    # Both run the patterns of `patternProperties`.
    "unevaluatedProperties",
    "unevaluatedItems",
)


def _without_patterns(check: Callable[..., Any]) -> Callable[..., Any]:
    def checked(validator: Any, value: Any, instance: Any, within: Any) -> Iterator[Any]:
        if "patternProperties" not in within:
            yield from check(validator, value, instance, within)

    return checked


def _without_many(check: Callable[..., Any]) -> Callable[..., Any]:
    def checked(validator: Any, value: Any, instance: Any, within: Any) -> Iterator[Any]:
        if not isinstance(instance, list) or len(instance) <= MAX_UNIQUE:
            yield from check(validator, value, instance, within)

    return checked
