"""`manage.py diagnose-server URL`: for authors of servers, without a workspace or a database."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser

from connectors.diagnosis.shell import diagnose_address
from connectors.diagnosis.text import as_json, as_text
from connectors.diagnosis.values import Diagnosis, Verdict
from connectors.inputs import (
    clean_token,
    problem_of_address,
    problem_of_header,
    problem_of_token,
)
from connectors.management.options import Refused, add_ca_bundle, bundle_from
from connectors.runtime import close_runtime

EXIT_STATUS: Final = {Verdict.OK: 0, Verdict.BROKEN: 1, Verdict.UNREACHABLE: 2}


class Command(BaseCommand):
    help = (
        "Walk the way to an MCP server and say which rules of the facets and resource arguments "
        "specifications it breaks, in both eras of the protocol. It runs on your machine and may "
        "reach every address from there, private ones and this machine included, which a host may "
        "not. Exit status: 0 all is well, 1 a rule is broken, 2 the server was not reached"
        " or the command is wrong."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("url", metavar="URL", help="Of the server's MCP endpoint.")
        parser.add_argument(
            "--bearer",
            metavar="-|VARIABLE",
            help="Where a bearer token is: - for standard input, or a variable of the environment.",
        )
        parser.add_argument("--header", action="append", default=[], metavar="'NAME: VALUE'")
        add_ca_bundle(parser)
        parser.add_argument("--json", action="store_true", help="Print one JSON object.")

    def handle(
        self,
        *,
        url: str,
        bearer: str | None,
        header: list[str],
        ca_bundle: str | None,
        json: bool,
        **_: Any,
    ) -> None:
        _refuse(problem_of_address(url, lambda _: True))
        headers = tuple(_header(text) for text in header)
        if bearer is not None:
            headers += (("Authorization", f"Bearer {_token(bearer)}"),)
        try:
            bundle = bundle_from(ca_bundle)
        except Refused as refused:
            raise CommandError(str(refused), returncode=2) from refused
        try:
            diagnosis = diagnose_address(url, headers, bundle)
        finally:
            close_runtime()
        self.stdout.write(_as_json(diagnosis) if json else as_text(diagnosis))
        if status := EXIT_STATUS[diagnosis.verdict]:
            sys.exit(status)


def _as_json(diagnosis: Diagnosis) -> str:
    return json.dumps(as_json(diagnosis))


def _header(text: str) -> tuple[str, str]:
    name, separator, value = text.partition(":")
    name, value = name.strip(), value.strip()
    if not separator or not value:
        raise CommandError("A header is given as 'Name: value'.", returncode=2)
    _refuse(problem_of_header(name, value))
    return name, value


def _token(source: str) -> str:
    """Never an argument itself: other people on a machine can read those."""
    token = clean_token(input() if source == "-" else os.environ.get(source, ""))
    if not token:
        raise CommandError(f"There is no token in {source}.", returncode=2)
    _refuse(problem_of_token(token))
    return token


def _refuse(problem: str | None) -> None:
    if problem:
        raise CommandError(problem, returncode=2)
