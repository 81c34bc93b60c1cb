"""A server described by a server.json: where it is reached and what has to be filled in.

Pure. The file is untrusted: what the server can be reached without is left out with a note, the
rest refuses the file.
Source: MCP Registry, server.json schema 2025-12-11; `_meta["ai.nimblebrain/host"].placements`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from connectors.protocol.identifiers import HOST
from connectors.protocol.placements import Placement, parse_placements
from connectors.protocol.text import is_blank, shorten

MAX_URL_CHARS: Final = 2_000
MAX_VALUE_CHARS: Final = 8_000
MAX_HEADERS: Final = 32
MAX_CHOICES: Final = 100

_NAME: Final = re.compile(r"(?=.{3,200}\Z)[A-Za-z0-9.-]+/[A-Za-z0-9._-]+")
_VARIABLE: Final = re.compile(r"\{([A-Za-z0-9_]{1,64})\}")
# Printable ASCII, and braces around a variable only: others would travel as they are.
_ADDRESS: Final = re.compile(
    r"(?:https?://|(?=\{))(?:[!-\[\]^-z|~]|\{[A-Za-z0-9_]{1,64}\})+", re.IGNORECASE
)
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_VALUE: Final = re.compile(r"[\t -~]*")

# The transport says these itself; a description cannot speak for it.
_TRANSPORT_HEADERS: Final = frozenset(
    {"accept", "connection", "content-length", "content-type", "host", "transfer-encoding"}
)


class SettingKind(StrEnum):
    """Where the value of a setting goes."""

    HEADER = "header"
    VARIABLE = "variable"


@dataclass(frozen=True, slots=True)
class Setting:
    """A value that the server wants. Several settings of a server never share kind and name."""

    kind: SettingKind
    name: str
    title: str
    """What it is, in the server's words; its name if there are none."""
    is_required: bool
    is_secret: bool
    value: str | None = field(default=None, repr=False)
    """What it is unless somebody says otherwise. A header's may hold `{variables}`."""
    choices: tuple[str, ...] = ()
    """The only values allowed; empty if all are."""


@dataclass(frozen=True, slots=True)
class ServerDescription:
    """A server that can be connected over Streamable HTTP.

    url: may hold `{variables}`, each of which is among the settings.
    notes: what was left out and why, in words for people.
    """

    name: str
    title: str
    description: str
    version: str
    url: str
    settings: tuple[Setting, ...]
    placements: tuple[Placement, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a file describes no server that can be connected, in words for people."""

    reason: str


class _Unfit(Exception):
    """The file, or one setting in it, cannot be used; the message is the reason for people."""


def fill(template: str, values: Mapping[str, str]) -> str:
    """Put values into the `{variables}` of an address or a header; unknown ones stay as they are.

    A value is put in once and never read for variables itself.
    """
    return _VARIABLE.sub(lambda found: values.get(found[1], found[0]), template)


def parse_server_json(value: object) -> ServerDescription | Refusal:
    """Read a server.json, as its JSON came. The first Streamable HTTP remote is the one used."""
    try:
        return _description_of(value)
    except _Unfit as unfit:
        return Refusal(str(unfit))


def _description_of(body: object) -> ServerDescription:
    if not isinstance(body, dict):
        raise _Unfit("the file is not a JSON object")
    name = body.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise _Unfit('name is missing or not of the form "com.example/server"')
    remote, url = _remote_of(body.get("remotes"))
    settings, notes = _settings_of(remote, url)
    host = _mapping(_mapping(body.get("_meta")).get(HOST))
    placements, left_out = parse_placements(host.get("placements"))
    return ServerDescription(
        name=name,
        title=_text(body, "title", 100) or name.partition("/")[2],
        description=_text(body, "description", 500),
        version=_text(body, "version", 100),
        url=url,
        settings=settings,
        placements=tuple(placements),
        notes=(*notes, *left_out),
    )


def _remote_of(remotes: object) -> tuple[dict[str, object], str]:
    for remote in remotes if isinstance(remotes, list) else []:
        if not isinstance(remote, dict) or remote.get("type") != "streamable-http":
            continue
        url = remote.get("url")
        if not isinstance(url, str) or len(url) > MAX_URL_CHARS or not _ADDRESS.fullmatch(url):
            raise _Unfit("the address of the Streamable HTTP remote is not an http(s) URL")
        return remote, url
    raise _Unfit("no remote speaks Streamable HTTP (type streamable-http)")


def _settings_of(remote: dict[str, object], url: str) -> tuple[tuple[Setting, ...], list[str]]:
    declared = _mapping(remote.get("variables"))
    found = [
        _setting(SettingKind.VARIABLE, name, declared.get(name), is_required=True)
        for name in _VARIABLE.findall(url)
    ]
    notes = []
    headers = remote.get("headers")
    for number, header in enumerate(headers if isinstance(headers, list) else [], start=1):
        if number > MAX_HEADERS:
            notes.append(f"only the first {MAX_HEADERS} headers are used")
            break
        try:
            found += _header_settings(_mapping(header))
        except _Unfit as unfit:
            notes.append(f"header {number}: {unfit}")
    # Header names are the same in any letter case, variable names are not.
    settings: dict[tuple[SettingKind, str], Setting] = {}
    for setting in found:
        is_header = setting.kind is SettingKind.HEADER
        name = setting.name.lower() if is_header else setting.name
        settings.setdefault((setting.kind, name), setting)
    return tuple(settings.values()), notes


def _header_settings(header: dict[str, object]) -> list[Setting]:
    name = header.get("name")
    if not isinstance(name, str) or not _HEADER_NAME.fullmatch(name):
        raise _Unfit("its name is missing or none that a header can have")
    if name.lower() in _TRANSPORT_HEADERS or name.lower().startswith("mcp-"):
        raise _Unfit(f"{name} belongs to the transport")
    setting = _setting(SettingKind.HEADER, name, header)
    declared = _mapping(header.get("variables"))
    used = [one for one in _VARIABLE.findall(setting.value or "") if one in declared]
    return [setting, *(_setting(SettingKind.VARIABLE, one, declared[one]) for one in used)]


def _setting(
    kind: SettingKind, name: str, declared: object, *, is_required: bool = False
) -> Setting:
    member = _mapping(declared)
    choices = member.get("choices")
    return Setting(
        kind=kind,
        name=name,
        title=_text(member, "description", 200) or name,
        is_required=is_required or member.get("isRequired") is True,
        is_secret=member.get("isSecret") is True,
        value=_value(member, "value", name) or _value(member, "default", name),
        choices=tuple(
            choice
            for choice in (choices[:MAX_CHOICES] if isinstance(choices, list) else [])
            if isinstance(choice, str) and len(choice) <= 200 and _VALUE.fullmatch(choice)
        ),
    )


def _value(member: dict[str, object], key: str, name: str) -> str | None:
    value = member.get(key)
    if not isinstance(value, str) or not value:
        return None
    # Line ends would let a file add headers of its own.
    if len(value) > MAX_VALUE_CHARS or not _VALUE.fullmatch(value):
        raise _Unfit(f"the {key} of {name} is too long or has characters that cannot be sent")
    return value


def _text(member: dict[str, object], key: str, max_chars: int) -> str:
    value = member.get(key)
    if not isinstance(value, str) or is_blank(value[:max_chars]):
        return ""
    return shorten(value, max_chars)


def _mapping(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}
