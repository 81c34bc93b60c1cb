"""Connectors and facets as the tests need them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from connectors.actions import add_connector
from connectors.models import Connector
from connectors.protocol.identifiers import FACETS
from connectors.sessions import Listed

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def at(seconds):
    """A moment so many seconds after NOW."""
    return NOW + timedelta(seconds=seconds)


def make_connector(workspace, slug="outbound", url="http://127.0.0.1:9/mcp", **changes):
    """A ready connector of a server that advertises facets."""
    facts = {
        "name": slug.capitalize(),
        "asked_at": NOW,
        "connection": "ready",
        "first_ready_at": NOW,
        "advertises_facets": True,
        "capabilities": {"resources": {}, "tools": {}, "extensions": {FACETS: {}}},
        "epoch": 1,
    }
    connector = Connector(workspace=workspace, slug=slug, url=url, **{**facts, **changes})
    return add_connector(connector, [], by=None)


def entry(name="drafts", **changes):
    """A facet's entry in resources/list."""
    known = {
        "uri": f"acme://facets/{name}",
        "name": name,
        "title": f"{name.capitalize()} awaiting review",
        "mimeType": "application/json",
        "_meta": {FACETS: {"level": "warning"}},
    }
    return {key: value for key, value in {**known, **changes}.items() if value is not None}


def listed(*entries, **changes):
    return Listed(entries=list(entries), pages=1, **changes)
