"""What a server.json said of a server, as a connector keeps it: settings and placements. Pure.

`Connector.required` holds them as JSON that we wrote ourselves; a server.json is read by
`protocol.server_json`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from connectors.protocol.placements import Placement
from connectors.protocol.server_json import (
    ServerDescription,
    Setting,
    SettingKind,
    fill,
)

_VARIABLE: Final = re.compile(r"\{([A-Za-z0-9_]{1,64})\}")


@dataclass(frozen=True, slots=True)
class Declared:
    """One setting. kind: "bearer", "header" or "variable", as of a secret.

    template: of a header that is made of variables, e.g. "Bearer {api_key}"; people fill in those.
    """

    kind: str
    name: str
    title: str = ""
    is_required: bool = True
    is_secret: bool = True
    template: str = ""
    choices: tuple[str, ...] = ()
    default: str = ""

    @property
    def key(self) -> tuple[str, str]:
        return (self.kind, self.name)


def declared_by(description: ServerDescription) -> list[Declared]:
    """The settings out of a server.json."""
    return [_declared(setting) for setting in description.settings]


def _declared(setting: Setting) -> Declared:
    value = setting.value or ""
    is_template = setting.kind is SettingKind.HEADER and bool(variables_in(value))
    return Declared(
        kind=setting.kind.value,
        name=setting.name,
        title=setting.title,
        is_required=setting.is_required,
        is_secret=setting.is_secret,
        template=value if is_template else "",
        choices=setting.choices,
        default="" if is_template else value,
    )


def as_json(declared: list[Declared]) -> list[dict[str, Any]]:
    """For storing. Defaults are not kept: what is sent is stored as a secret."""
    return [
        {
            "kind": each.kind,
            "name": each.name,
            "title": each.title,
            "is_required": each.is_required,
            "is_secret": each.is_secret,
            "template": each.template,
            "choices": list(each.choices),
        }
        for each in declared
    ]


def from_json(stored: list[dict[str, Any]]) -> list[Declared]:
    """What `as_json` made; a member that an older version did not write has its default."""
    return [Declared(**{**each, "choices": tuple(each.get("choices", ()))}) for each in stored]


def as_entry(placement: Placement) -> dict[str, Any]:
    """A placement as a connector keeps it, and as a form's row has it."""
    entry = {
        "slot": placement.slot,
        "route": placement.route,
        "label": placement.label,
        "icon": placement.icon,
        "priority": placement.priority,
    }
    return {member: value for member, value in entry.items() if value is not None}


def variables_in(text: str) -> list[str]:
    """The names of the `{variables}` in an address or a header."""
    return _VARIABLE.findall(text)


def filled(url: str, values: Mapping[str, str]) -> str:
    """An address with its `{variables}` put in. A value cannot leave its place in it."""
    return fill(url, {name: quote(value, safe="") for name, value in values.items()})


def to_fill_in(url: str, declared: list[Declared]) -> list[Declared]:
    """What people fill in: all but the headers made of variables, and the address's variables."""
    known = {each.key for each in declared}
    unnamed = [
        Declared("variable", name)
        for text in (url, *(each.template for each in declared))
        for name in dict.fromkeys(variables_in(text))
        if ("variable", name) not in known
    ]
    found = [each for each in declared if not each.template]
    return list({each.key: each for each in [*found, *unnamed]}.values())


def required_keys(url: str, declared: list[Declared]) -> list[tuple[str, str]]:
    """The (kind, name) of each value without which nothing can be sent.

    A variable is required where the address has it, or a required header.
    """
    templates = [each.template for each in declared if each.is_required and each.template]
    used = [("variable", name) for text in (url, *templates) for name in variables_in(text)]
    own = [each.key for each in declared if each.is_required and not each.template]
    return list(dict.fromkeys([*own, *used]))


def headers_of(declared: list[Declared], values: dict[str, str]) -> list[tuple[str, str]]:
    """The headers made of variables; one that misses a value is not sent."""
    return [
        (each.name, _VARIABLE.sub(lambda found: values[found[1]], each.template))
        for each in declared
        if each.template and all(name in values for name in variables_in(each.template))
    ]
