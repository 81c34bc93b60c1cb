"""Commands with subcommands that people read and scripts parse: words, or one JSON object."""

from __future__ import annotations

import json
import re
from argparse import _SubParsersAction
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from workspaces.models import User, Workspace
from workspaces.queries import person_at, workspace_at

Acts: TypeAlias = "_SubParsersAction[CommandParser]"


@dataclass(frozen=True, slots=True)
class Report:
    """What an act says: `words` to people, `data` to scripts.

    problem: why the exit status is 1 although the act was done; empty if it is 0.
    """

    words: str
    data: dict[str, Any]
    problem: str = ""


class ActsCommand(BaseCommand):
    """`manage.py <thing> <act> … [--json]`. Errors are words on stderr and exit status 1."""

    def add_arguments(self, parser: CommandParser) -> None:
        self.add_acts(parser.add_subparsers(metavar="ACT", required=True))

    def add_acts(self, acts: Acts) -> None:
        raise NotImplementedError

    def handle(self, *args: Any, act: Callable[..., Report], json: bool, **options: Any) -> None:
        refuse_unstorable(options)
        try:
            report = act(**options)
        except ValidationError as error:
            raise CommandError(_words_of(error)) from error
        self.stdout.write(_json(report.data) if json else report.words)
        if report.problem:
            raise CommandError(report.problem)


def add_act(acts: Acts, name: str, act: Callable[..., Report], words: str) -> CommandParser:
    """A subcommand. `act` is called with the parsed options by name."""
    parser = acts.add_parser(name, help=words, description=words)
    parser.add_argument("--json", action="store_true", help="Print one JSON object.")
    parser.set_defaults(act=act)
    return parser


def refuse_unstorable(options: dict[str, Any]) -> None:
    """Refuse an argument that is no text: bytes that are not UTF-8, which Python hands on as halves
    of characters, and NUL, which only a caller in Python can give.

    Raises: CommandError.
    """
    for name, value in options.items():
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and re.search("[\x00\ud800-\udfff]", text):
                raise CommandError(f"“{name}” holds characters that cannot be stored.")


def workspace_named(slug: str) -> Workspace:
    found = workspace_at(slug)
    if found is None:
        raise CommandError(f"There is no workspace “{slug}”. `workspace list` shows them all.")
    return found


def person_named(email: str) -> User:
    found = person_at(email)
    if found is None:
        raise CommandError(f"Nobody has the address {email}. `member add` makes a person.")
    return found


def _words_of(error: ValidationError) -> str:
    if not hasattr(error, "error_dict"):
        return " ".join(error.messages)
    return " ".join(
        " ".join(messages if name == NON_FIELD_ERRORS else [f"{name.capitalize()}:", *messages])
        for name, messages in error.message_dict.items()
    )


def _json(data: dict[str, Any]) -> str:
    def instant(value: object) -> str:
        if isinstance(value, datetime):
            return value.isoformat()
        raise TypeError(f"{value!r} has no place in JSON")

    return json.dumps(data, default=instant)
