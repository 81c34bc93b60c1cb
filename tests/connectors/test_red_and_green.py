"""D14: whatever fails first on a connection turns its row, within 5 s and after one quick retry."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from django.utils import timezone
from mcp.shared.exceptions import MCPError

from connectors.models import Check, Connector
from connectors.tasks import check_connector, list_connectors
from overview.queries import panel_of
from tests.connectors.outside import connect, text, tool, traces
from tests.overview.factories import entry
from tests.overview.served import FACETED, publish, read_due, wait_until
from tests.servers.raw import Drop, Reply, raw_server

RED_SECONDS = 5


@pytest.fixture
def world(site, agent, acme, alice, monkeypatch):
    """A CRM that does everything, another server whose tool cites it, and a worker."""
    monkeypatch.setattr(check_connector, "delay", check_connector)
    monkeypatch.setattr(list_connectors, "delay", list_connectors)
    with (
        raw_server(capabilities={**FACETED, "tools": {}}) as crm,
        raw_server(capabilities={"tools": {}}) as mail,
    ):
        publish(crm, entry())
        crm.on("resources/templates/list", {"resourceTemplates": [{"uriTemplate": "crm://s/{id}"}]})
        crm.on("tools/list", {"tools": [tool("lookup")]})
        crm.on("tools/call", text("found"))
        mail.on("tools/list", {"tools": [tool("send", cites={"to": ["crm"]})]})
        mail.on("tools/call", text("sent"))
        connect(acme, "crm", crm.url, by=alice)
        connect(acme, "mail", mail.url, by=alice)
        read_due()
        yield agent, crm


def call(agent):
    assert agent.call("crm__lookup").is_error
    traces()


def read(agent):
    with pytest.raises(MCPError):
        agent.talk(lambda client: client.read_resource("crm://s/1"))


def cite(agent):
    assert not agent.call("mail__send", {"to": "crm://s/1"}).is_error
    traces()


def count(_):
    stale = timezone.now() - timedelta(minutes=2)
    Connector.objects.get(slug="crm").facets.update(read_at=stale)
    read_due()


def check(_):
    crm = Connector.objects.get(slug="crm")
    Connector.objects.filter(pk=crm.pk).update(check_due_at=timezone.now())
    check_connector(crm.pk)


def rows(workspace):
    return [row.title for row in panel_of(workspace, timezone.now()).rows]


def drop(_):
    raise Drop


@pytest.mark.requirement("D14")
@pytest.mark.parametrize(
    ("first", "down"),
    [
        (call, drop),
        (read, drop),
        (cite, drop),
        (count, drop),
        (check, drop),
        (call, lambda _: Reply(503)),
        (count, lambda _: Reply(503)),
    ],
)
def test_the_first_failed_call_turns_it_red_and_the_first_good_one_green(world, acme, first, down):
    agent, crm = world
    assert rows(acme) == ["Drafts awaiting review"]
    acme.refresh_from_db()
    before, checks = acme.panel_version, Check.objects.filter(is_ok=False).count()

    crm.intercept = down
    started = time.monotonic()
    first(agent)
    wait_until(lambda: rows(acme) == ["Failed"])
    assert time.monotonic() - started < RED_SECONDS
    acme.refresh_from_db()
    # A failed count is shown on the connector's page too, and told by itself.
    red = before + (2 if first is count else 1)
    assert acme.panel_version == red
    assert Check.objects.filter(is_ok=False).count() == checks + 1

    # Still down: what else fails is no news, and nobody asks before the pause is over.
    asked = len(crm.requests)
    for _ in range(3):
        assert agent.call("crm__lookup").is_error
        agent.call("mail__send", {"to": "crm://s/1"})
    traces()
    acme.refresh_from_db()
    assert (acme.panel_version, len(crm.requests)) == (red, asked)

    crm.intercept = None
    check(agent)
    acme.refresh_from_db()
    assert acme.panel_version == red + 1
    assert "Failed" not in rows(acme)
    read_due()
    assert rows(acme) == ["Drafts awaiting review"]
