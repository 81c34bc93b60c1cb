"""RFC 6570 expansion written down as section 3.2.1 has it, to compare ownership with.

Gives a set: where the RFC's words and `uritemplate` differ on an empty item under ";" (`;k` or
`;k=`), both. Values are strings, lists, tuples of pairs, or None.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from urllib.parse import quote

Value = str | list[str] | tuple[tuple[str, str], ...] | None

UNRESERVED = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~"
RESERVED = ":/?#[]@!$&'()*+,;="

# operator: first, separator, named, what an empty value leaves after its name
TABLE = {
    "": ("", ",", False, ""),
    "+": ("", ",", False, ""),
    "#": ("#", ",", False, ""),
    ".": (".", ".", False, ""),
    "/": ("/", "/", False, ""),
    ";": (";", ";", True, ""),
    "?": ("?", "&", True, "="),
    "&": ("&", "&", True, "="),
}

_ONE = re.compile(r"((?:%[0-9A-Fa-f]{2})+)|.", re.DOTALL)


def expansions(template: str, values: Mapping[str, Value]) -> set[str]:
    """Every text that the template expands to with these values, none if a prefix forbids them."""
    parts: list[set[str]] = []
    for literal, expression in re.findall(r"([^{]+)|\{([^}]*)\}", template):
        parts.append(
            {quote(literal, safe=RESERVED + "%")} if literal else _expand(expression, values)
        )
    return {"".join(chosen) for chosen in product(*parts)}


def _expand(expression: str, values: Mapping[str, Value]) -> set[str]:
    operator = expression[0] if expression[0] in TABLE else ""
    first, separator, _, _ = TABLE[operator]
    defined = []
    for spec in expression[len(operator) :].split(","):
        name = re.split(r"[:*]", spec)[0]
        value = values.get(name)
        if value is None or value in ([], ()):
            continue
        defined.append(set(_variable(operator, spec, name, value)))
    if not defined:
        return {""}
    return {first + separator.join(chosen) for chosen in product(*defined)}


def _variable(operator: str, spec: str, name: str, value: Value) -> Iterator[str]:
    _, separator, named, if_empty = TABLE[operator]
    if isinstance(value, str):
        if ":" in spec:
            value = shorten(value, int(spec.split(":")[1]), operator in ("+", "#"))
        text = encode(value, operator)
        yield _assign(name, text, if_empty) if named else text
    elif ":" in spec:
        return
    elif not spec.endswith("*"):
        text = ",".join(encode(item, operator) for item in _flat(value))
        yield f"{name}={text}" if named else text
    else:
        pairs = [(name, item) if isinstance(item, str) else item for item in value or ()]
        items = [list(_item(operator, key, item, value, named)) for key, item in pairs]
        yield from map(separator.join, product(*items))


def _item(operator: str, key: str, item: str, value: Value, named: bool) -> Iterator[str]:
    text = encode(item, operator)
    if isinstance(value, list):
        if not named:
            yield text
            return
        written = key
    else:
        written = encode(key, operator)
    if not named:
        yield f"{written}={text}"
        return
    yield _assign(written, text, TABLE[operator][3])
    yield f"{written}={text}"


def _assign(name: str, text: str, if_empty: str) -> str:
    return f"{name}={text}" if text else name + if_empty


def _flat(value: Value) -> Iterable[str]:
    for item in value or ():
        yield from [item] if isinstance(item, str) else item


def encode(value: str, operator: str) -> str:
    if operator in ("+", "#"):
        return quote(re.sub("%(?![0-9A-Fa-f]{2})", "%25", value), safe=RESERVED + "%")
    return quote(value, safe="~")


def shorten(value: str, length: int, passes_triplets: bool) -> str:
    """The first characters; triplets of the value that are one character's UTF-8 count as one."""
    if not passes_triplets:
        return value[:length]
    return "".join(list(_units(value))[:length])


def _units(value: str) -> Iterator[str]:
    for match in _ONE.finditer(value):
        triplets = match[1]
        while triplets:
            size = next((size for size in (3, 6, 9, 12) if _is_character(triplets[:size])), 3)
            yield triplets[:size]
            triplets = triplets[size:]
        if match[1] is None:
            yield match[0]


def _is_character(triplets: str) -> bool:
    try:
        return len(bytes.fromhex(triplets.replace("%", "")).decode()) == 1
    except ValueError:
        return False
