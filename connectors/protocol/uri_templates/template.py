"""The grammar of a template, and what each of its expressions can expand to.

Source: RFC 6570, section 2 (grammar), section 3 and appendix A (expansion). A template comes from a
server, untrusted.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Final
from urllib.parse import quote

from .characters import RESERVED, SCHEME
from .pieces import Chain, Choice, Joined, Piece, Text, Value

MAX_TEMPLATE_CHARS: Final = 1_024
MAX_VARIABLES: Final = 64
MAX_PREFIX_CHARS: Final = 20_000
"""Of all `:n` of a template together, because they are counted off one by one. One may be 9 999."""

_FEW_VARIABLES: Final = 8

_TRIPLET: Final = "%[0-9A-Fa-f]{2}"
_PLANES: Final = "".join(
    f"{chr((plane << 16) + (0x1000 if plane == 0xE else 0))}-{chr((plane << 16) + 0xFFFD)}"
    for plane in range(1, 0x11)
)
# RFC 6570 2.1 with erratum 6937, which gives the apostrophe back to the literals.
_LITERAL: Final = re.compile(
    rf"(?:[!#$&-;=?-\[\]_a-z~\u00a0-\ud7ff\ue000-\ufdcf\ufdf0-\uffef{_PLANES}]|{_TRIPLET})++"
)
_CHARACTER: Final = rf"(?:[A-Za-z0-9_]|{_TRIPLET})"
_VARIABLE: Final = rf"{_CHARACTER}(?:\.?{_CHARACTER})*+(?:\*|:[1-9][0-9]{{0,3}})?"
_EXPRESSION: Final = re.compile(rf"\{{([+#./;?&]?)({_VARIABLE}(?:,{_VARIABLE})*+)\}}")


class BadTemplate(ValueError):
    """This text is no template, or is over a bound; `reason` says why, for people."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Operator:
    """A row of the table in RFC 6570, appendix A."""

    first: str
    separator: str
    is_named: bool = False
    is_reserved: bool = False
    may_drop_equals: bool = False


_OPERATORS: Final = {
    "": Operator("", ","),
    "+": Operator("", ",", is_reserved=True),
    "#": Operator("#", ",", is_reserved=True),
    ".": Operator(".", "."),
    "/": Operator("/", "/"),
    ";": Operator(";", ";", is_named=True, may_drop_equals=True),
    "?": Operator("?", "&", is_named=True),
    "&": Operator("&", "&", is_named=True),
}


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """One use of a name (every use is another one), and what it expands to if that is defined."""

    name: str
    operator: Operator
    prefix: int | None = None
    is_exploded: bool = False
    piece: Piece = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "piece", _piece_of(self))

    def written(self, value: Piece, *, may_be_empty: bool) -> Piece:
        """The value with what the operator writes before it."""
        if not self.operator.is_named:
            return value
        return Chain((Text(self.name), _assigned(self.operator, value, may_be_empty)))


@dataclass(frozen=True, slots=True)
class Expression:
    operator: Operator
    variables: tuple[Variable, ...]


@dataclass(frozen=True, slots=True)
class Template:
    """A parsed template.

    start, tail: literal text that every expansion starts and ends with, scheme in lower case;
    "" when the template has no literal scheme. parts: what follows `start`.
    anchors: for each name used more than once, the use that tells its value (`_anchor`).
    """

    text: str
    start: str = field(compare=False, repr=False)
    tail: str = field(compare=False, repr=False)
    parts: tuple[Text | Expression, ...] = field(compare=False, repr=False)
    anchors: tuple[Variable, ...] = field(compare=False, repr=False)
    variable_count: int = field(compare=False, repr=False)


def parse(text: str) -> Template:
    """Read a template; the latest ones are kept, in 64 MiB at the most whatever they are.

    Raises: BadTemplate, if it is malformed, longer than MAX_TEMPLATE_CHARS, or has more than
    MAX_VARIABLES variables or MAX_PREFIX_CHARS prefix characters.
    """
    has_few = text.count("{") + text.count(",") <= _FEW_VARIABLES
    return _parse_few(text) if has_few else _parse_many(text)


def _parse(text: str) -> Template:
    if len(text) > MAX_TEMPLATE_CHARS:
        raise BadTemplate(f"longer than {MAX_TEMPLATE_CHARS} characters")
    parts = _parts(text)
    variables = [
        variable for part in parts if isinstance(part, Expression) for variable in part.variables
    ]
    if len(variables) > MAX_VARIABLES:
        raise BadTemplate(f"more than {MAX_VARIABLES} variables")
    if sum(variable.prefix or 0 for variable in variables) > MAX_PREFIX_CHARS:
        raise BadTemplate(f"prefixes of more than {MAX_PREFIX_CHARS} characters")
    start, tail = "", ""
    if parts and isinstance(parts[0], Text) and (scheme := SCHEME.match(parts[0].text)):
        start = scheme[0].lower() + parts[0].text[scheme.end() :]
        tail = parts[-1].text if len(parts) > 1 and isinstance(parts[-1], Text) else ""
        del parts[0]
    return Template(text, start, tail, tuple(parts), tuple(_anchors(variables)), len(variables))


_parse_few: Final = lru_cache(maxsize=8_192)(_parse)
_parse_many: Final = lru_cache(maxsize=256)(_parse)


def _parts(text: str) -> list[Text | Expression]:
    parts: list[Text | Expression] = []
    at = 0
    while at < len(text):
        if literal := _LITERAL.match(text, at):
            # RFC 6570 3.1: what no URI may contain is encoded, the rest is copied.
            parts.append(Text(quote(literal[0], safe=RESERVED + "%")))
            at = literal.end()
        elif expression := _EXPRESSION.match(text, at):
            parts.append(_expression(expression[1], expression[2]))
            at = expression.end()
        else:
            raise BadTemplate(_complaint(text, at))
    return parts


def _complaint(text: str, at: int) -> str:
    if text[at] != "{":
        return f"character {at + 1}, {text[at]!a}, has no place outside an expression"
    end = text.find("}", at)
    if end < 0:
        return f"the expression at character {at + 1} is not closed"
    return f"{text[at : end + 1]!a} is no expression"


def _expression(symbol: str, variables: str) -> Expression:
    operator = _OPERATORS[symbol]
    return Expression(operator, tuple(_variable(operator, spec) for spec in variables.split(",")))


def _variable(operator: Operator, spec: str) -> Variable:
    name, _, prefix = spec.partition(":")
    if prefix:
        return Variable(name, operator, prefix=int(prefix))
    return Variable(name.removesuffix("*"), operator, is_exploded=name.endswith("*"))


def _piece_of(variable: Variable) -> Piece:
    """What a defined variable can expand to.

    Three readings of RFC 6570 3.2.1 are ours. A name in an exploded map is encoded as values are,
    as "all other expression types allow only unreserved characters" has it and nearly every
    expander does, though a sentence below it says "as for literals". An item may be followed by a
    bare "=" under ";" (the text drops it, `uritemplate` writes it). A map may repeat a name.
    """
    operator = variable.operator
    if variable.prefix:
        # RFC 6570 2.4.1: a prefix does not apply to lists and maps.
        least = 1 if operator.may_drop_equals else 0
        prefix = Value(operator.is_reserved, least=least, most=variable.prefix)
        return variable.written(prefix, may_be_empty=True)
    if operator.is_reserved:
        # With every character allowed, a list or a map expands as some string does.
        return Value(is_reserved=True)
    if not variable.is_exploded:
        return variable.written(Value(extra=","), may_be_empty=True)
    pairs = _pairs(operator)
    if not operator.is_named:
        return Choice((Value(extra=operator.separator), pairs))
    item = variable.written(Value(), may_be_empty=True)
    return Choice((Joined(item, operator.separator), pairs))


@cache
def _pairs(operator: Operator) -> Piece:
    if operator.separator == ".":
        # Names and values may hold dots as well: then one of those between two "=" separates.
        between = Joined(Chain((Value(), Text("."), Value())), "=")
        more = Choice((Text(""), Chain((between, Text("=")))))
        return Chain((Value(), Text("="), more, Value()))
    return Joined(Chain((Value(), _assigned(operator, Value(), True))), operator.separator)


def _assigned(operator: Operator, value: Piece, may_be_empty: bool) -> Piece:
    assigned = Chain((Text("="), value))
    return Choice((Text(""), assigned)) if operator.may_drop_equals and may_be_empty else assigned


def _anchors(variables: Iterable[Variable]) -> Iterable[Variable]:
    uses: dict[str, list[Variable]] = defaultdict(list)
    for variable in variables:
        uses[variable.name].append(variable)
    for same in uses.values():
        if len(same) > 1 and (anchor := _anchor(same)):
            yield anchor


def _anchor(uses: list[Variable]) -> Variable | None:
    """The use whose expansion tells all the others; None if no use does.

    That is the longest one without reserved characters, whose encoding is read back in one way
    only. Not told: names that are exploded, names cut short under + or #, and names that are whole
    under + or # alone but cut short elsewhere. Their uses are matched as if they had other names.
    """
    if any(use.is_exploded or (use.prefix and use.operator.is_reserved) for use in uses):
        return None
    encoded = [use for use in uses if not use.operator.is_reserved]
    anchor = max(encoded or uses, key=lambda use: use.prefix or MAX_PREFIX_CHARS)
    return anchor if not anchor.prefix or len(encoded) == len(uses) else None
