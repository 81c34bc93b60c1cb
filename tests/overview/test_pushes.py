"""What changes on the panel is pushed, also what time and failures alone change."""

from __future__ import annotations

import pytest

from connectors.protocol.facets import InvalidRead
from connectors.sessions import Fault, FaultKind
from overview import counts
from overview.models import StoredFacet
from overview.queries import panel_of
from overview.reads import CountTaken, ListingTaken
from tests.overview.factories import NOW, at, entry, listed, make_connector

pytestmark = pytest.mark.django_db
TIMEOUT = Fault(FaultKind.TIMEOUT, "The server took longer than 5 s.")


@pytest.fixture
def outbound(acme):
    return make_connector(acme)


def take_listing(connector, outcome, now=NOW):
    assert counts.claim_listings([connector.pk], owner="lister", now=now) == [connector.pk]
    asked = {connector.pk: (connector.generation, connector.epoch)}
    counts.keep([ListingTaken(connector.pk, outcome, True)], asked, owner="lister", now=now)


def read(connector, outcome, now, name="drafts"):
    assert counts.claim_counts([connector.pk], owner="reader", now=now)
    asked = {connector.pk: (connector.generation, connector.epoch)}
    counts.keep([CountTaken(connector.pk, name, outcome)], asked, owner="reader", now=now)


def has_pushed(workspace):
    """Whether the panel's version rose since the last time that this was asked."""
    before = workspace.panel_version
    workspace.refresh_from_db()
    return workspace.panel_version > before


@pytest.fixture
def counted(outbound, acme):
    """Outbound, with one facet that counted 3 at NOW."""
    take_listing(outbound, listed(entry()))
    StoredFacet.objects.update(lease_owner="", lease_until=None)
    read(outbound, 3, NOW)
    has_pushed(acme)
    return outbound


@pytest.mark.requirement("F-107")
def test_a_first_reading_that_finds_nothing_to_show_ends_the_checking(outbound, acme):
    take_listing(outbound, listed(entry()))
    StoredFacet.objects.update(lease_owner="", lease_until=None)
    assert has_pushed(acme)
    assert panel_of(acme, NOW).checking == 1
    read(outbound, 0, NOW)
    assert has_pushed(acme)
    assert panel_of(acme, NOW).checking == 0


@pytest.mark.requirement("F-057", "F-107")
def test_a_first_listing_that_fails_ends_the_checking(outbound, acme):
    assert panel_of(acme, NOW).checking == 1
    take_listing(outbound, TIMEOUT)
    assert has_pushed(acme)
    assert panel_of(acme, NOW).checking == 0
    take_listing(outbound, TIMEOUT, at(60))
    assert not has_pushed(acme)


@pytest.mark.requirement("F-113", "F-116")
@pytest.mark.parametrize("count", [0, 3])
def test_a_count_that_expires_while_its_reads_fail_is_pushed_as_unavailable(outbound, acme, count):
    take_listing(outbound, listed(entry()))
    StoredFacet.objects.update(lease_owner="", lease_until=None)
    read(outbound, count, NOW)
    for seconds in (61, 300, 599):
        read(outbound, TIMEOUT, at(seconds))
    has_pushed(acme)
    # At once: the pause after a failure is not waited for when the count ends.
    read(outbound, InvalidRead.NO_COUNT, at(600.5))
    assert has_pushed(acme)
    assert [row.state for row in panel_of(acme, at(601)).rows] == ["unavailable"]
    assert not counts.claim_counts([outbound.pk], owner="next", now=at(601))
    read(outbound, TIMEOUT, at(616))
    assert not has_pushed(acme)


def test_a_count_that_grows_old_while_its_reads_fail_is_pushed_with_its_age(counted, acme):
    read(counted, TIMEOUT, at(100))
    assert not has_pushed(acme)
    read(counted, TIMEOUT, at(121))
    assert has_pushed(acme)
    read(counted, TIMEOUT, at(140))
    assert not has_pushed(acme)


def test_a_count_that_was_shown_as_old_is_pushed_when_it_is_read_again(counted, acme):
    """Nobody looked for five minutes; the first page shows an old count until it is read."""
    assert panel_of(acme, at(300)).rows[0].is_old
    read(counted, 3, at(301))
    assert has_pushed(acme)


@pytest.mark.requirement("F-113")
def test_an_expired_count_is_pushed_when_it_is_read_again_though_it_is_the_same(counted, acme):
    assert panel_of(acme, at(700)).is_empty
    read(counted, 3, at(701))
    assert has_pushed(acme)


@pytest.mark.parametrize("owner_of_clock", ["count", "failure", "lease", "listing"])
def test_a_clock_that_was_set_back_stops_no_reading(counted, acme, owner_of_clock):
    """What is stored comes from an hour ahead: it is as little trusted as what is an hour old."""
    ahead = at(3600)
    if owner_of_clock == "listing":
        take_listing(counted, listed(entry()), ahead)
        assert counts.claim_listings([counted.pk], owner="next", now=at(400)) == [counted.pk]
        return
    changes = {
        "count": {"read_at": ahead},
        "failure": {"read_at": None, "failed_at": ahead},
        "lease": {"lease_owner": "gone", "lease_until": ahead},
    }[owner_of_clock]
    StoredFacet.objects.update(**changes)
    assert counts.claim_counts([counted.pk], owner="next", now=at(61))
