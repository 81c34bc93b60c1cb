"""The form that a tool's arguments are filled in with, made of the tool's own schema."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any, Final

from django import forms

from connectors.protocol.text import shorten
from connectors.tool_results import showable
from connectors.tool_schema import Argument, Kind, arguments_in, problems_in

PLAIN: Final = {"autocomplete": "off", "spellcheck": "false", "autocapitalize": "none"}
WHOLE: Final = "whole"
"""The field for all arguments as one JSON object."""
MAX_DIGITS: Final = 400


class ToolForm(forms.Form):
    """`arguments()` is what the call carries: an optional argument left empty is not sent.

    Fields are numbered: an argument's name is a stranger's text.
    once: marks one call, so that a second click does not make another one.
    """

    once = forms.UUIDField(widget=forms.HiddenInput)

    def __init__(self, data: Any = None, *, schema: object, once: Any = None) -> None:
        super().__init__(data, initial={"once": once})
        self.schema = schema
        found = arguments_in(schema)
        self.by_field = {f"a{number}": each for number, each in enumerate(found or [])}
        self.is_whole = found is None
        if self.is_whole:
            self.fields[WHOLE] = _json_field(label="Arguments, as a JSON object", initial="{}")
        for key, argument in self.by_field.items():
            self.fields[key] = _field(argument)

    def rows(self) -> list[forms.BoundField]:
        """The fields that people fill in."""
        return [self[name] for name in self.fields if name != "once"]

    def arguments(self) -> dict[str, Any]:
        if self.is_whole:
            whole: dict[str, Any] = self.cleaned_data[WHOLE]
            return whole
        given = ((each.name, self.cleaned_data[key]) for key, each in self.by_field.items())
        return {name: value for name, value in given if value is not _ABSENT}

    def clean(self) -> dict[str, Any]:
        if self.errors:
            return self.cleaned_data
        if self.is_whole and not isinstance(self.cleaned_data[WHOLE], dict):
            raise forms.ValidationError("The arguments have to be a JSON object: {…}.")
        fields = {argument.name: key for key, argument in self.by_field.items()}
        for problem in problems_in(self.schema, self.arguments()) or []:
            named = f"{problem.argument}: " if problem.argument else ""
            key = fields.get(problem.argument or "")
            self.add_error(key, f"{'' if key else named}{problem.words}.")
        return self.cleaned_data


_ABSENT: Final = object()


class _ArgumentField(forms.CharField):
    """Text that is read as the argument's kind. Empty is absent: a page cannot say which it is."""

    def __init__(self, read: Callable[[str], Any], **options: Any) -> None:
        super().__init__(strip=False, **options)
        self.read = read

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        return self.read(text.replace("\r\n", "\n")) if text else _ABSENT


def _field(argument: Argument) -> forms.Field:
    options: dict[str, Any] = {
        "label": shorten(argument.name, 100) + ("" if argument.is_required else " (optional)"),
        "help_text": argument.description or _title(argument),
        "required": argument.is_required,
        "initial": showable(_initial(argument)),
        "error_messages": {"required": f"Fill in {shorten(argument.name, 100)}."},
    }
    match argument.kind:
        case Kind.CHOICE | Kind.BOOLEAN:
            return _choice_field(argument, options)
        case Kind.JSON:
            return _json_field(**options)
        case Kind.LINES:
            widget: forms.Widget = forms.Textarea({**PLAIN, "rows": 3})
            options["help_text"] = f"{options['help_text']} One per line.".strip()
            return _ArgumentField(_lines, widget=widget, **options)
        case Kind.NUMBER | Kind.INTEGER:
            mode = "numeric" if argument.kind is Kind.INTEGER else "decimal"
            widget = forms.TextInput({**PLAIN, "inputmode": mode})
            read = _integer if argument.kind is Kind.INTEGER else _number
            return _ArgumentField(read, widget=widget, **options)
        case Kind.TEXT:
            widget = forms.Textarea({**PLAIN, "rows": 1}) if argument.is_long else None  # type: ignore[assignment]
            return _ArgumentField(str, widget=widget or forms.TextInput(PLAIN), **options)


def _title(argument: Argument) -> str:
    """The title, where it says more than the name that a program made it of."""
    says_same = argument.title.casefold() == argument.name.replace("_", " ").casefold()
    return "" if says_same else argument.title


def _choice_field(argument: Argument, options: dict[str, Any]) -> forms.Field:
    """Choices are numbered: 1, "1" and true are different arguments."""
    values = (True, False) if argument.kind is Kind.BOOLEAN else argument.choices
    words = (
        ("Yes", "No")
        if argument.kind is Kind.BOOLEAN
        else [shorten(_written(each)) for each in values]
    )
    numbered = [(str(number), text) for number, text in enumerate(words)]
    widget = forms.Select(choices=[("", "–"), *numbered])

    def read(text: str) -> Any:
        if text not in dict(numbered):
            raise forms.ValidationError("Choose one of these.")
        return values[int(text)]

    return _ArgumentField(read, widget=widget, **options)


def _initial(argument: Argument) -> str:
    default = argument.default
    match argument.kind:
        case Kind.CHOICE | Kind.BOOLEAN:
            values = (True, False) if argument.kind is Kind.BOOLEAN else argument.choices
            same = (
                i
                for i, each in enumerate(values)
                if each == default and type(each) is type(default)
            )
            return str(next(same, ""))
        case Kind.LINES if isinstance(default, list) and all(isinstance(x, str) for x in default):
            return "\n".join(default)
        case Kind.TEXT:
            return default if isinstance(default, str) else ""
        case _:
            return "" if default is None else _written(default)


def _json_field(**options: Any) -> forms.Field:
    options["help_text"] = f"{options.get('help_text', '')} As JSON.".strip()
    return _ArgumentField(_json, widget=forms.Textarea({**PLAIN, "rows": 4}), **options)


def _written(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _lines(text: str) -> list[str]:
    return [line for line in text.split("\n") if line]


def _integer(text: str) -> int:
    try:
        if len(text) > MAX_DIGITS:
            raise ValueError
        return int(text)
    except ValueError:
        raise forms.ValidationError("Enter a whole number.") from None


def _number(text: str) -> float | int:
    try:
        number = _json(text)
    except forms.ValidationError:
        number = None
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise forms.ValidationError("Enter a number, such as 3 or 2.5.")
    return number


def _json(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError):
        raise forms.ValidationError("This is not JSON.") from None


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse(text)


def _refuse(text: str) -> Any:
    raise ValueError(text)
