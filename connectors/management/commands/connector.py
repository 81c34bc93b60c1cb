"""Add, list, check, connect, disconnect and remove the connectors of a workspace."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from connectors.actions import (
    add_connector,
    connect_connector,
    disconnect_connector,
    remove_connector,
)
from connectors.checks import look_at
from connectors.management.options import Refused, connector_from, secrets_from
from connectors.models import Connector
from connectors.probe import take_listings
from connectors.queries import standing_now, standings
from connectors.status import Status
from workspaces.models import User, Workspace


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        acts = parser.add_subparsers(dest="act", required=True)
        add = acts.add_parser("add", help="Add a connector, at rest until it is connected.")
        _common(add)
        add.add_argument("url", nargs="?", default="", metavar="URL")
        add.add_argument("--name", default="", help="What people call it.")
        add.add_argument(
            "--bearer",
            metavar="TOKEN",
            help="A bearer token; - reads it from standard input. Where it is not given, the "
            "environment's CONNECTOR_BEARER is used.",
        )
        add.add_argument("--header", action="append", default=[], metavar="'NAME: VALUE'")
        add.add_argument("--variable", action="append", default=[], metavar="NAME=VALUE")
        add.add_argument("--placement", action="append", default=[], metavar="JSON")
        add.add_argument("--server-json", metavar="FILE", help="As the MCP Registry has it.")
        add.add_argument("--stdio", metavar="NAME", default="", help="One of STDIO_SERVERS.")
        add.add_argument("--connect", action="store_true", help="Connect it at once.")
        _common(acts.add_parser("list", help="List the connectors."), one=False)
        _common(acts.add_parser("check", help="Ask its server now. Exit status 1: not ready."))
        _common(acts.add_parser("connect", help="Connect it. Exit status 1: not ready."))
        _common(acts.add_parser("disconnect", help="Put it at rest. Nothing is deleted."))
        remove = acts.add_parser("remove", help="Delete it with its secrets and counts.")
        _common(remove)
        remove.add_argument("--yes", action="store_true", help="Do not ask for its name.")

    def handle(self, *, act: str, slug: str, personal: str | None, **options: Any) -> None:
        self.is_json: bool = options["json"]
        self.scope = _scope(slug, personal)
        getattr(self, f"_{act}")(**options)

    def _add(self, *, connector: str, connect: bool, **options: Any) -> None:
        try:
            new, declared = connector_from(options)
            secrets = secrets_from(options, declared, self.stdin_line)
            new.slug = connector
            for field, value in self.scope.items():
                setattr(new, field, value)
            add_connector(new, secrets, by=None)
        except Refused as refused:
            raise CommandError(str(refused)) from None
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from None
        if connect:
            self._connect(connector=connector)
        else:
            self._tell(new)

    def stdin_line(self) -> str:
        return input().strip()

    def _list(self, **_: Any) -> None:
        found = standings(Connector.objects.filter(**self.scope), timezone.now())
        if self.is_json:
            self.stdout.write(json.dumps([_described(each.connector) for each in found]))
            return
        for each in found:
            self.stdout.write(f"{each.connector.slug}\t{each.connector.name}\t{each.label}")

    def _check(self, *, connector: str, **_: Any) -> None:
        self._look(self._found(connector))

    def _connect(self, *, connector: str, **_: Any) -> None:
        found = self._found(connector)
        connect_connector(found, by=None)
        found.refresh_from_db()
        self._look(found)

    def _disconnect(self, *, connector: str, **_: Any) -> None:
        found = self._found(connector)
        disconnect_connector(found, by=None)
        self._tell(found)

    def _remove(self, *, connector: str, yes: bool, **_: Any) -> None:
        found = self._found(connector)
        if not yes and input(f"Type “{found.name}” to remove it: ").strip() != found.name:
            raise CommandError("That is not its name. Nothing was removed.")
        described = _described(found)
        remove_connector(found, by=None)
        if self.is_json:
            self.stdout.write(json.dumps({**described, "removed": True}))
        else:
            self.stdout.write(f"{found.name} is removed.")

    def _look(self, connector: Connector) -> None:
        """Check here, so that no worker is needed, and take the listings as a worker would."""
        now = timezone.now()
        look_at(connector, now)
        take_listings(connector.pk, uuid4().hex, now)
        standing = self._tell(connector)
        if standing.status is not Status.READY:
            reason = standing.connector.failure or ", ".join(standing.missing)
            raise CommandError(f"{connector.name}: {standing.label}. {reason}".rstrip(" ."))

    def _tell(self, connector: Connector) -> Any:
        connector.refresh_from_db()
        standing = standing_now(connector, timezone.now())
        if self.is_json:
            self.stdout.write(json.dumps(_described(connector)))
        else:
            ms = connector.latency_ms
            is_timed = standing.status is Status.READY and ms is not None
            latency = f", {ms} ms" if is_timed else ""
            self.stdout.write(f"{connector.name}: {standing.label}{latency}")
        return standing

    def _found(self, slug: str) -> Connector:
        found = Connector.objects.filter(**self.scope, slug=slug).first()
        if found is None:
            raise CommandError(f"There is no connector “{slug}” here.")
        return found


def _common(parser: CommandParser, *, one: bool = True) -> None:
    parser.add_argument("slug", metavar="WORKSPACE")
    if one:
        parser.add_argument("connector", metavar="CONNECTOR")
    parser.add_argument(
        "--personal", metavar="EMAIL", help="A member's personal connectors, not the workspace's."
    )
    parser.add_argument("--json", action="store_true")


def _scope(slug: str, email: str | None) -> dict[str, Any]:
    """Whose connectors are meant, as conditions on `Connector`."""
    workspace = Workspace.objects.filter(slug=slug).first()
    if workspace is None:
        raise CommandError(f"There is no workspace “{slug}”.")
    if email is None:
        return {"workspace": workspace}
    members = User.objects.filter(memberships__workspace=workspace)
    owner = members.filter(email__iexact=email).first()
    if owner is None:
        raise CommandError(f"{email} is not a member of {slug}.")
    return {"owner": owner}


def _described(connector: Connector) -> dict[str, Any]:
    """A connector as scripts read it. Never a secret; the names are public."""
    standing = standing_now(connector, timezone.now())
    checked_at = connector.checked_at
    return {
        "slug": connector.slug,
        "name": connector.name,
        "url": connector.url,
        "personal": connector.is_personal,
        "status": standing.status.value,
        "label": standing.label,
        "missing": list(standing.missing),
        "failure": connector.failure,
        "checked_at": checked_at.isoformat() if checked_at else None,
        "latency_ms": connector.latency_ms,
        "revision": connector.revision,
        "server_name": connector.server_name,
        "server_version": connector.server_version,
        "facets_advertised": connector.advertises_facets,
    }
