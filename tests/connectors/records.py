"""Connectors as the tests of this folder need them, and what their forms send."""

from __future__ import annotations

from django.utils import timezone

from connectors.actions import add_connector, connect_connector
from connectors.contact import Contact, record_contacts
from connectors.models import Connector, Secret
from connectors.protocol.identifiers import FACETS
from connectors.sessions import Connected, Fault, FaultKind

MARKER = "planted-secret-7f3a"
"""A secret's value. It must appear nowhere but in the database, encrypted, and on the wire."""

ANSWERED = Connected(
    revision="2026-07-28",
    server_name="mail-server",
    server_version="1.4",
    capabilities={"resources": {}, "extensions": {FACETS: {}}},
)
UNREACHABLE = Fault(FaultKind.UNREACHABLE, "Nothing listens there.")
REFUSED = Fault(FaultKind.UNAUTHORIZED, "The server refused the credential.", http_status=401)


def added(workspace, slug="mail", secrets=(), **fields):
    """A connector at rest."""
    known = {"name": slug.capitalize(), "url": f"https://{slug}.example.com/mcp"}
    connector = Connector(workspace=workspace, slug=slug, **{**known, **fields})
    return add_connector(connector, [secret(*each) for each in secrets], by=None)


def secret(kind="bearer", name="token", value=MARKER):
    return Secret(kind=kind, name=name, value=value)


def asked(connector, by=None):
    """Somebody pressed Connect; the first attempt runs."""
    connect_connector(connector, by=by)
    connector.refresh_from_db()
    return connector


def contacted(connector, outcome, *, now=None, latency_ms=12):
    """A check that began now came to an end."""
    now = now or timezone.now()
    contact = Contact(connector.pk, connector.generation, outcome, latency_ms)
    record_contacts([contact], now)
    connector.refresh_from_db()
    return connector


def ready(workspace, slug="mail", **fields):
    return contacted(asked(added(workspace, slug, **fields)), ANSWERED)


def failed(workspace, slug="tasks", outcome=UNREACHABLE, **fields):
    return contacted(asked(added(workspace, slug, **fields)), outcome)


def sheet(**fields):
    """What the form sends, by the names of its fields with _ for -."""
    known = {
        "name": "Mail",
        "url": "https://mail.example.com/mcp",
        "headers-TOTAL_FORMS": "2",
        "headers-INITIAL_FORMS": "0",
        "placements-TOTAL_FORMS": "2",
        "placements-INITIAL_FORMS": "0",
    }
    return {**known, **fields}
