"""Checks of many servers at once: what one of them does, or what we do wrong with it, costs it
alone."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from kombu.exceptions import OperationalError

from connectors import contact, probe
from connectors.models import Check, Connector, Secret
from connectors.runtime import close_runtime
from connectors.tasks import check_connectors, list_connectors
from tests.connectors.records import added, secret
from tests.overview.served import in_thread, wait_until
from tests.servers.raw import raw_server

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def servers(queued):
    with raw_server() as one, raw_server() as another:
        yield one, another
        close_runtime()


@pytest.fixture
def group(acme, servers):
    """The ids of two connectors whose checks are due, "one" and "another"."""
    due = {"asked_at": timezone.now(), "connection": "starting", "check_due_at": timezone.now()}
    slugs = zip(("one", "another"), servers, strict=True)
    return [added(acme, slug, url=server.url, **due).pk for slug, server in slugs]


def connections():
    return dict(Connector.objects.values_list("slug", "connection"))


@pytest.mark.requirement("D14")
def test_a_slow_server_delays_no_other_of_its_group(group, servers):
    slow, _ = servers
    is_over = threading.Event()

    async def late(_):
        await asyncio.to_thread(is_over.wait, 8)

    slow.intercept = late
    checking = in_thread(lambda: check_connectors(group))
    wait_until(lambda: connections() == {"one": "starting", "another": "ready"})
    assert checking.is_alive()
    is_over.set()
    checking.join(10)
    assert connections() == {"one": "ready", "another": "ready"}


def test_a_secret_that_no_key_can_read_fails_its_own_connector_alone(group):
    Secret.objects.create(connector_id=group[0], kind=secret().kind, name="token", value="x")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE connectors_secret SET value = %s", [b"unreadable"])
    check_connectors(group)
    assert connections() == {"one": "failed", "another": "ready"}
    assert "cannot be decrypted" in Connector.objects.get(slug="one").failure


def test_one_that_misses_a_setting_waits_for_it_and_the_others_are_checked(group):
    Connector.objects.filter(pk=group[0]).update(url="https://{host}/mcp")
    check_connectors(group)
    assert connections() == {"one": "starting", "another": "ready"}
    waiting = Connector.objects.get(slug="one")
    assert (waiting.check_due_at, waiting.check_lease_until) == (None, None)


@pytest.mark.parametrize(("module", "name"), [(probe, "probe"), (contact, "_facts")])
def test_an_error_of_ours_with_one_of_a_group_costs_that_one_its_check(
    group, monkeypatch, caplog, module, name
):
    real = getattr(module, name)

    def broken(*args):
        if group[0] in (getattr(args[0], "pk", 0), getattr(args[1], "connector_id", 0)):
            raise RuntimeError("a bug")
        return real(*args)

    monkeypatch.setattr(module, name, broken)
    check_connectors(group)
    assert connections() == {"one": "starting", "another": "ready"}
    assert Connector.objects.get(slug="one").check_lease_until > timezone.now()
    assert [each.connector_id for each in Check.objects.all()] == [group[1]]
    assert [record.connector for record in caplog.records if record.exc_info] == [group[0]]


def test_a_new_connection_has_what_it_lists_taken_at_once(group, queued):
    check_connectors(group)
    assert sorted(pk for _, pks in queued for pk in pks) == group


def test_a_broker_that_is_away_costs_no_check_of_the_group(group, monkeypatch, caplog):
    def away(_):
        raise OperationalError("no broker")

    monkeypatch.setattr(list_connectors, "delay", away)
    check_connectors(group)
    assert connections() == {"one": "ready", "another": "ready"}
    assert {record.message for record in caplog.records if record.levelname == "WARNING"} == {
        "Listings could not be queued"
    }


def test_a_larger_group_costs_no_more_statements(acme, servers, queued):
    def statements(number):
        Connector.objects.all().delete()
        due = {"asked_at": timezone.now(), "connection": "starting"}
        ids = [
            added(acme, f"server-{n}", url=servers[0].url, **due, check_due_at=timezone.now()).pk
            for n in range(number)
        ]
        check_connectors(ids)
        assert {*connections().values()} == {"ready"}
        Connector.objects.update(check_due_at=timezone.now() - timedelta(seconds=1))
        with CaptureQueriesContext(connection) as captured:
            check_connectors(ids)
        assert Check.objects.count() == 2 * number
        return len(captured)

    assert statements(2) == statements(10) < 20
