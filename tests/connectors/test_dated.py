"""The dated facts on a connector's page: each from its own moment, by real checks and calls."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.utils import timezone

from connectors.actions import restart_connections
from connectors.models import Connector
from connectors.runtime import close_runtime
from tests.connectors.records import added, asked
from tests.connectors.signing_in import look
from tests.overview.factories import entry
from tests.overview.served import FACETED, publish, read_due
from tests.servers.raw import Reply, raw_server

pytestmark = pytest.mark.django_db(transaction=True)

NOON = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _no_sessions_left(queued):
    yield
    close_runtime()


@pytest.fixture
def server():
    with raw_server(capabilities=FACETED) as server:
        publish(server)
        yield server


def shown(client):
    """The facts as the page has them, by name; times as they are written there."""
    page = client.get("/w/acme/connectors/mail/").content.decode()
    facts = re.findall(r"<dt>([^<]*)</dt><dd>(.*?)</dd>", page, re.DOTALL)
    plain = {name: html.unescape(re.sub(r"<[^>]*>", "", words)).strip() for name, words in facts}
    known = ("Reachable", "Protocol revision", "Credential", "Last real call", "Last check")
    return {name: plain[name].split(" (")[-1].rstrip(")") for name in known}


def at(minutes):
    moment = NOON + timedelta(minutes=minutes)
    return f"{moment:%-d %b %Y, %H:%M}:00 UTC"


def test_each_fact_has_a_date_of_its_own(alice_client, acme, server):
    with time_machine.travel(NOON, tick=False) as clock:
        connector = asked(added(acme, secrets=[("bearer", "token")], url=server.url))
        assert shown(alice_client) == {
            "Reachable": "not tried yet",
            "Protocol revision": "not known yet",
            "Credential": "not tried yet",
            "Last real call": "none",
            "Last check": "never",
        }
        look(connector)
        clock.move_to(NOON + timedelta(minutes=5))
        look(connector)
        assert shown(alice_client) == {
            "Reachable": f"yes, since {at(0)}",
            "Protocol revision": f"2026-07-28, last spoken {at(5)}",
            "Credential": f"accepted, {at(5)}",
            "Last real call": "none",
            "Last check": at(5),
        }
        # It goes down: what was known of the era and the credential is known since before.
        clock.move_to(NOON + timedelta(minutes=9))
        server.intercept = lambda _: Reply(503)
        look(connector)
        assert shown(alice_client) == {
            "Reachable": f"no, since {at(9)}",
            "Protocol revision": f"2026-07-28, last spoken {at(5)}",
            "Credential": f"accepted, {at(5)}",
            "Last real call": "none",
            "Last check": at(9),
        }
        clock.move_to(NOON + timedelta(minutes=12))
        server.intercept = lambda _: Reply(401)
        look(connector)
        found = shown(alice_client)
        assert found["Reachable"] == f"yes, {at(12)}"
        assert found["Credential"] == f"refused, {at(12)}"


def test_what_was_refused_stays_refused_since_then_when_the_host_starts_anew(
    alice_client, acme, server
):
    with time_machine.travel(NOON, tick=False) as clock:
        server.intercept = lambda _: Reply(401)
        connector = asked(added(acme, secrets=[("bearer", "token")], url=server.url))
        look(connector)
        assert shown(alice_client)["Credential"] == f"refused, {at(0)}"
        before = Connector.objects.get().connection_since
        clock.move_to(NOON + timedelta(minutes=5))
        restart_connections(Connector.objects.all(), timezone.now())
        assert Connector.objects.get().connection_since == before
        assert shown(alice_client)["Credential"] == f"refused, {at(0)}"


def test_a_facets_read_is_a_real_call(alice_client, acme, server):
    publish(server, entry())
    with time_machine.travel(NOON, tick=False) as clock:
        look(asked(added(acme, url=server.url)))
        assert shown(alice_client)["Credential"] == "none is sent"
        clock.move_to(NOON + timedelta(minutes=1))
        read_due()  # The listing,
        read_due()  # and the facet in it.
        assert shown(alice_client)["Last real call"] == at(1)


def test_a_part_of_the_address_that_is_no_secret_is_no_credential(alice_client, acme, server):
    team = {"kind": "variable", "name": "team", "is_secret": False}
    url = f"{server.url}?team={{team}}"
    look(asked(added(acme, secrets=[("variable", "team")], required=[team], url=url)))
    assert shown(alice_client)["Credential"] == "none is sent"
