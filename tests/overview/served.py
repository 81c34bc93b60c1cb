"""Connectors of real servers, read as the worker reads them, seen as a member sees them."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

from django.db import connection, connections
from django.db.models import Q
from django.utils import timezone

from connectors.actions import add_connector, connect_connector
from connectors.models import Connector
from connectors.protocol.identifiers import FACETS
from connectors.tasks import check_connector
from overview.due import due_connectors
from overview.queries import panel_of
from overview.refresh import refresh

FACETED: dict[str, Any] = {"resources": {}, "extensions": {FACETS: {}}}
DRAFTS = "Drafts awaiting review"


def publish(server, *entries):
    """List these resources, each counting 3."""
    server.on("resources/list", {"resources": list(entries)})
    server.on("resources/read", lambda request: count(3, request.params["uri"]))


def count(value, uri="acme://x"):
    return text(json.dumps({"count": value}), uri)


def text(body, uri="acme://x", **changes):
    return {"contents": [{"uri": uri, "mimeType": "application/json", "text": body, **changes}]}


def connect(workspace, server, slug="outbound"):
    """Add a connector, ask for it, and check it as the worker does."""
    connector = Connector(workspace=workspace, slug=slug, name=slug.capitalize(), url=server.url)
    add_connector(connector, [], by=None)
    connect_connector(connector, by=None)
    check_connector(connector.pk)
    return Connector.objects.get(pk=connector.pk)


def read_due(now=None):
    """What the sweep would queue, run here."""
    refresh(due_connectors(Q(), now or timezone.now()))


def shown(workspace):
    return [(row.count, row.title, row.state) for row in panel_of(workspace, timezone.now()).rows]


def in_thread(function):
    def bracketed():
        try:
            function()
        finally:
            connections.close_all()

    thread = threading.Thread(target=bracketed, daemon=True)
    thread.start()
    return thread


def wait_until(is_so):
    deadline = time.monotonic() + 10
    while not is_so():
        assert time.monotonic() < deadline
        connection.close()
        threading.Event().wait(0.02)
