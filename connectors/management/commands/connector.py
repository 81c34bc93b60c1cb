"""`manage.py connector add|list|check|diagnose|connect|disconnect|remove`."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from connectors.actions import (
    add_connector,
    audit,
    connect_connector,
    disconnect_connector,
    record_use,
    remove_connector,
    secrets_used,
)
from connectors.checks import look_at
from connectors.diagnosis.shell import diagnose
from connectors.diagnosis.text import as_json, as_text
from connectors.diagnosis.values import Verdict
from connectors.listing_reads import take_listings
from connectors.management.options import Refused, add_ca_bundle, connector_from, secrets_from
from connectors.models import Connector
from connectors.queries import Standing, standing_now, standings
from connectors.sessions import Connected
from connectors.status import Status
from workspaces.command_line import (
    Acts,
    ActsCommand,
    Report,
    add_act,
    person_named,
    workspace_named,
)
from workspaces.queries import membership_of


class Command(ActsCommand):
    help = "Add, list, check, diagnose, connect, disconnect and remove connectors of a workspace."

    def add_acts(self, acts: Acts) -> None:
        add = _one(add_act(acts, "add", _add, "Add a connector, at rest until it is connected."))
        add.add_argument("url", nargs="?", default="")
        add.add_argument("--name", default="", help="What people call it.")
        add.add_argument(
            "--bearer",
            metavar="TOKEN",
            help="A bearer token; - reads it from standard input. Without it, CONNECTOR_BEARER "
            "of the environment is used.",
        )
        add.add_argument("--header", action="append", default=[], metavar="'NAME: VALUE'")
        add.add_argument(
            "--variable",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="Of a {variable} in the address or in a declared header.",
        )
        add.add_argument("--placement", action="append", default=[], metavar="JSON")
        add.add_argument("--server-json", metavar="FILE", help="As the MCP Registry has it.")
        add_ca_bundle(add)
        add.add_argument("--stdio", metavar="NAME", default="", help="One of STDIO_SERVERS.")
        add.add_argument("--connect", action="store_true", help="Connect it at once.")
        _some(add_act(acts, "list", _list, "List the connectors."))
        _one(add_act(acts, "check", _check, "Ask its server now. Exit status 1: not ready."))
        _one(add_act(acts, "diagnose", _diagnose, "Walk the way to its server. 1: a step failed."))
        _one(add_act(acts, "connect", _connect, "Connect it. Exit status 1: not ready."))
        _one(add_act(acts, "disconnect", _disconnect, "Put it at rest. Nothing is deleted."))
        remove = _one(add_act(acts, "remove", _remove, "Delete it with its secrets and counts."))
        remove.add_argument("--yes", action="store_true", help="Do not ask for its name.")


def _some(parser: CommandParser) -> CommandParser:
    parser.add_argument("slug", help="Of the workspace.")
    parser.add_argument(
        "--personal", metavar="EMAIL", help="A member's own connectors, not the workspace's."
    )
    return parser


def _one(parser: CommandParser) -> CommandParser:
    _some(parser).add_argument("connector", help="Its slug.")
    return parser


def _add(slug: str, personal: str | None, connector: str, connect: bool, **options: Any) -> Report:
    try:
        new, declared = connector_from(options)
        secrets = secrets_from(options, declared, lambda: input().strip())
    except Refused as refused:
        raise CommandError(str(refused)) from refused
    new.slug = connector
    scope = _scope(slug, personal)
    if Connector.objects.filter(slug=connector, **scope).exists():
        raise CommandError(f"“{connector}” already exists. `connector list` shows it.")
    for field, value in scope.items():
        setattr(new, field, value)
    add_connector(new, secrets, by=None)
    return _connected(new) if connect else _report(new)


def _list(slug: str, personal: str | None, **_: Any) -> Report:
    found = standings(Connector.objects.filter(**_scope(slug, personal)), timezone.now())
    words = [f"{each.connector.slug}\t{each.connector.name}\t{each.label}" for each in found]
    return Report(
        "\n".join(words), {"workspace": slug, "connectors": [_data(each) for each in found]}
    )


def _check(slug: str, personal: str | None, connector: str, **_: Any) -> Report:
    found = _found(slug, personal, connector)
    record_use(found, "connector checked", by=None)
    return _looked_at(found)


def _diagnose(slug: str, personal: str | None, connector: str, **_: Any) -> Report:
    found = _found(slug, personal, connector)
    audit(found, "connector diagnosed", None, secrets_used(found))
    diagnosis = diagnose(found)
    problem = "" if diagnosis.verdict is Verdict.OK else diagnosis.summary
    return Report(as_text(diagnosis), as_json(diagnosis), problem=problem)


def _connect(slug: str, personal: str | None, connector: str, **_: Any) -> Report:
    return _connected(_found(slug, personal, connector))


def _disconnect(slug: str, personal: str | None, connector: str, **_: Any) -> Report:
    found = _found(slug, personal, connector)
    disconnect_connector(found, by=None)
    return _report(found)


def _remove(slug: str, personal: str | None, connector: str, yes: bool, **_: Any) -> Report:
    found = _found(slug, personal, connector)
    if not yes and input(f"Type “{found.name}” to remove it: ").strip() != found.name:
        raise CommandError("That is not its name. Nothing was removed.")
    data = _data(standing_now(found, timezone.now()))
    remove_connector(found, by=None)
    return Report(f"{found.name} is removed.", {**data, "removed": True})


def _connected(connector: Connector) -> Report:
    connect_connector(connector, by=None)
    connector.refresh_from_db()
    return _looked_at(connector)


def _looked_at(connector: Connector) -> Report:
    """Check in this process and take the listings, so that scripts need no worker."""
    now = timezone.now()
    if isinstance(look_at(connector, now), Connected):
        take_listings([connector.pk], uuid4().hex, now)
    report = _report(connector)
    if report.data["status"] == Status.READY:
        return report
    return Report(report.words, report.data, problem=f"{connector.name} is not ready.")


def _report(connector: Connector) -> Report:
    connector.refresh_from_db()
    standing = standing_now(connector, timezone.now())
    more = ""
    if standing.status is Status.READY and connector.latency_ms is not None:
        more = f", {connector.latency_ms} ms"
    elif reason := connector.failure or ", ".join(standing.missing):
        more = f": {reason}"
    return Report(f"{connector.name}: {standing.label}{more}", _data(standing))


def _scope(slug: str, email: str | None) -> dict[str, Any]:
    """Whose connectors are meant, as fields of `Connector`."""
    workspace = workspace_named(slug)
    if email is None:
        return {"workspace": workspace}
    owner = person_named(email)
    if membership_of(workspace, owner.pk) is None:
        raise CommandError(f"{email} is not a member of {slug}.")
    return {"owner": owner}


def _found(slug: str, personal: str | None, connector: str) -> Connector:
    found = Connector.objects.filter(**_scope(slug, personal), slug=connector).first()
    if found is None:
        raise CommandError(f"There is no connector “{connector}”. `connector list` shows them all.")
    return found


def _data(standing: Standing) -> dict[str, Any]:
    """A connector as scripts read it; the names are public. Never a secret."""
    connector = standing.connector
    return {
        "slug": connector.slug,
        "name": connector.name,
        "url": connector.url,
        "is_personal": connector.is_personal,
        "status": standing.status.value,
        "label": standing.label,
        "missing": list(standing.missing),
        "failure": connector.failure,
        "checked_at": connector.checked_at,
        "latency_ms": connector.latency_ms,
        "revision": connector.revision,
        "server_name": connector.server_name,
        "server_version": connector.server_version,
        "advertises_facets": connector.advertises_facets,
    }
