"""A server whose tool cites records, and the one that owns them."""

from __future__ import annotations

import pytest

from tests.connectors.outside import install, text, tool
from tests.connectors.resolution.seen import echo
from tests.servers.raw import raw_server


@pytest.fixture
def mail():
    """The server whose tool cites records."""
    with raw_server(capabilities={"tools": {}, "resources": {}}) as server:
        server.on("tools/call", text("sent"))
        yield server


@pytest.fixture
def crm():
    """The server that owns the records, and echoes the URI as a record's text."""
    with raw_server(capabilities={"resources": {}}) as server:
        server.on("resources/read", echo)
        yield server


@pytest.fixture
def world(agent, acme, mail, crm):
    """Mail cites crm:// records, and CRM owns crm://signals/{id}."""
    declared = [tool("send", cites={"to": ["crm"]}), "plain"]
    install(acme, "mail", mail.url, listings={"tools": declared})
    install(acme, "crm", crm.url, listings={"templates": ["crm://signals/{id}"]})
    return agent
