"""A connector out of a command line's options, by the rules of the form."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from connectors.declared import Declared, as_entry, as_json, declared_by
from connectors.inputs import (
    clean_bundle,
    clean_name,
    clean_token,
    problem_of_address,
    problem_of_bundle,
    problem_of_header,
    problem_of_token,
    problem_of_value,
)
from connectors.models import Connector, Secret, SecretKind, Transport
from connectors.protocol.placements import Placement, parse_placements
from connectors.protocol.server_json import Refusal, ServerDescription, parse_server_json
from connectors.protocol.text import is_blank
from connectors.runtime import is_allowed_address

MAX_FILE_BYTES = 256 * 1024


class Refused(Exception):
    """An option that cannot be used; the message says which and why."""


def connector_from(options: dict[str, Any]) -> tuple[Connector, list[Declared]]:
    """The connector, without slug and owner, and what its server declared.

    Raises: Refused.
    """
    description = _described(options["server_json"]) if options["server_json"] else None
    declared = declared_by(description) if description else []
    name = clean_name(options["name"] or (description.title if description else ""))
    if is_blank(name):
        raise Refused("Give it a name: --name NAME.")
    url = options["url"] or (description.url if description else "")
    command = options["stdio"]
    if command:
        url = ""
        if command not in settings.STDIO_SERVERS:
            raise Refused(f"“{command}” is not one of STDIO_SERVERS.")
    elif problem := problem_of_address(url, is_allowed_address):
        raise Refused(problem)
    placements = _placements(options["placement"])
    if description and not placements:
        placements = description.placements
    connector = Connector(
        name=name,
        url=url,
        transport=Transport.STDIO if command else Transport.HTTP,
        command=command,
        placements=[as_entry(each) for each in placements],
        required=as_json(declared),
        ca_bundle=bundle_from(options["ca_bundle"]),
    )
    return connector, declared


def add_ca_bundle(parser: CommandParser) -> None:
    parser.add_argument(
        "--ca-bundle", metavar="FILE", help="PEM: authorities to trust besides the usual ones."
    )


def bundle_from(path: str | None) -> str:
    """The certificates in a file; empty for none.

    Raises: Refused.
    """
    bundle = clean_bundle(_read(path) if path else "")
    _refuse(problem_of_bundle(bundle))
    return bundle


def _placements(given: list[str]) -> tuple[Placement, ...]:
    """What can be read of them is stored, and nothing else that stands in the JSON."""
    placements, reasons = parse_placements([_json(text, "--placement") for text in given])
    if reasons:
        raise Refused("; ".join(reasons))
    return tuple(placements)


def secrets_from(
    options: dict[str, Any], declared: list[Declared], read_line: Callable[[], str]
) -> list[Secret]:
    """The values that are sent to the server. read_line: standard input's next line.

    Raises: Refused, in words without any value.
    """
    values = {each.key: each.default for each in declared if each.default}
    for text in options["header"]:
        name, separator, value = text.partition(":")
        name, value = _declared_name(name.strip(), declared), value.strip()
        if not separator or not value:
            raise Refused("A header is given as 'Name: value'.")
        _refuse(problem_of_header(name, value))
        values[(str(SecretKind.HEADER), name)] = value
    for text in options["variable"]:
        name, separator, value = text.partition("=")
        if not separator or not value:
            raise Refused("A variable is given as NAME=VALUE.")
        _refuse(problem_of_value(value))
        values[(str(SecretKind.VARIABLE), name)] = value
    given = options["bearer"]
    token = os.environ.get("CONNECTOR_BEARER", "") if given is None else given
    token = clean_token(read_line() if token == "-" else token)
    if token:
        _refuse(problem_of_token(token))
        values[(str(SecretKind.BEARER), "token")] = token
    return [Secret(kind=kind, name=name, value=value) for (kind, name), value in values.items()]


def _declared_name(name: str, declared: list[Declared]) -> str:
    """The server's own spelling of a header that it declared: case is no difference."""
    spellings = {each.name.lower(): each.name for each in declared if each.kind == "header"}
    return spellings.get(name.lower(), name)


def _refuse(problem: str | None) -> None:
    if problem:
        raise Refused(problem)


def _read(path: str) -> str:
    try:
        with Path(path).open("rb") as file:
            text = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror}.") from None
    if len(text) > MAX_FILE_BYTES:
        raise Refused(f"{path} is larger than 256 KiB.")
    return text.decode(errors="replace")


def _described(path: str) -> ServerDescription:
    found = parse_server_json(_json(_read(path), path))
    if isinstance(found, Refusal):
        raise Refused(f"This server cannot be connected: {found.reason}.")
    return found


def _json(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise Refused(f"{what} is not JSON.") from None
