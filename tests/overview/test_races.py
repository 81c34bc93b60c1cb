"""Processes that store, remove and push at the same time, on a real database."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
from django.db import connection, connections, transaction

from connectors.actions import remove_connector
from connectors.check_leases import claim_checks
from connectors.models import Connector, Listing, OAuthGrant
from connectors.oauth.grants import held_by, refuse
from overview import counts
from overview.models import StoredFacet
from overview.reads import CountTaken, ListingTaken
from tests.overview.factories import NOW, at, entry, listed, make_connector
from workspaces.models import AuditEntry, Workspace

pytestmark = pytest.mark.django_db(transaction=True)
WAIT_SECONDS = 20


class InThread(threading.Thread):
    """Work in a thread with its own database connection; `end` gives what it raised to the test."""

    def __init__(self, work: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self._work = work
        self._raised: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._work()
        except BaseException as raised:
            self._raised = raised
        finally:
            connections.close_all()

    def end(self) -> None:
        self.join(WAIT_SECONDS)
        assert not self.is_alive()
        if self._raised is not None:
            raise self._raised


def wait_for_blocked(number):
    """Until so many others wait for a row. SQLite lets one transaction write, so all others do."""
    deadline = time.monotonic() + WAIT_SECONDS
    while connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            if cursor.fetchone()[0] >= number:
                return
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def outbound(acme):
    return make_connector(acme)


def storing(connector, taken, *, owner):
    asked = {connector.pk: (connector.generation, connector.epoch)}
    return InThread(lambda: counts.keep([taken], asked, owner=owner, now=at(1)))


def removing(connector):
    found = Connector.objects.get(pk=connector.pk)
    return InThread(lambda: remove_connector(found, by=None))


@pytest.mark.requirement("F-147")
def test_removing_a_connector_while_its_count_is_stored_ends_in_no_deadlock(acme, outbound):
    counts.claim_listings([outbound.pk], owner="lister", now=NOW)
    asked = {outbound.pk: (outbound.generation, outbound.epoch)}
    counts.keep([ListingTaken(outbound.pk, listed(entry()), True)], asked, owner="lister", now=NOW)
    StoredFacet.objects.update(lease_owner="reader", lease_until=at(20))
    with transaction.atomic():
        Workspace.objects.select_for_update().get(pk=acme.pk)
        remover = removing(outbound)
        wait_for_blocked(1)
        keeper = storing(outbound, CountTaken(outbound.pk, "drafts", 3), owner="reader")
        wait_for_blocked(2)
    keeper.end()
    remover.end()
    assert not (Connector.objects.exists() or StoredFacet.objects.exists())


@pytest.mark.requirement("F-147")
def test_removing_a_connector_while_its_first_listing_is_stored_fails_neither(acme, outbound):
    counts.claim_listings([outbound.pk], owner="lister", now=NOW)
    with transaction.atomic():
        list(Listing.objects.select_for_update().filter(connector=outbound))
        taken = ListingTaken(outbound.pk, listed(entry()), True)
        keeper = storing(outbound, taken, owner="lister")
        wait_for_blocked(1)
        remover = removing(outbound)
        wait_for_blocked(2)
    keeper.end()
    remover.end()
    assert not (Connector.objects.exists() or StoredFacet.objects.exists())


def test_removing_a_connector_twice_at_once_is_one_act(acme, outbound):
    with transaction.atomic():
        Workspace.objects.select_for_update().get(pk=acme.pk)
        removers = [removing(outbound) for _ in range(2)]
        wait_for_blocked(2)
    for remover in removers:
        remover.end()
    assert AuditEntry.objects.filter(action="connector removed").count() == 1


def test_removing_a_connector_while_its_tokens_are_refused_ends_in_no_deadlock(acme, outbound):
    OAuthGrant.objects.create(
        connector=outbound,
        client='{"id": "x", "secret": null, "method": "none"}',
        access_token="access",
        issued_at=NOW,
        signed_in_at=NOW,
    )
    held = held_by(Connector.objects.select_related("grant").get())
    assert held is not None
    with transaction.atomic():
        list(Connector.objects.select_for_update().filter(pk=outbound.pk))
        remover = removing(outbound)
        wait_for_blocked(1)
        refuser = InThread(lambda: refuse(held, "Refused.", at(1)))
        wait_for_blocked(2)
    refuser.end()
    remover.end()
    assert not Connector.objects.exists()


def test_of_two_that_claim_a_group_of_checks_at_once_each_check_is_made_by_one(acme):
    connectors = [make_connector(acme, f"server-{n}", check_due_at=NOW) for n in range(5)]
    generations = {each.pk: each.generation for each in connectors}
    claimed: list[dict[int, int]] = []

    def claiming(ids):
        return InThread(lambda: claimed.append(claim_checks(ids, at(1))))

    with transaction.atomic():
        list(Connector.objects.select_for_update().filter(slug="server-2"))
        claimers = [claiming(list(generations)), claiming(list(generations)[::-1])]
        wait_for_blocked(2)
    for claimer in claimers:
        claimer.end()
    assert sorted(claimed, key=len) == [{}, generations]
