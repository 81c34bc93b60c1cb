"""Who reads a count when, and what is kept of it: leases, freshness, and connectors that change."""

from __future__ import annotations

import pytest
from django.db.models import Q

from connectors.actions import connect_connector, disconnect_connector, remove_connector
from connectors.listings import in_use_from_outside
from connectors.models import Connector, Listing
from connectors.protocol.facets import InvalidRead
from connectors.sessions import Fault, FaultKind
from overview import counts, due
from overview.models import StoredFacet
from overview.queries import panel_of
from overview.reads import CountTaken, ListingTaken
from tests.overview.factories import NOW, at, entry, listed, make_connector
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db
TIMEOUT = Fault(FaultKind.TIMEOUT, "The server took longer than 5 s.")


@pytest.fixture
def outbound(acme):
    return make_connector(acme)


def list_facets(connector, *entries, now=NOW, fault=None, is_first=True):
    connector = Connector.objects.get(pk=connector.pk)
    claimed = counts.claim_listings([connector.pk], owner="lister", now=now)
    assert claimed == [connector.pk]
    result = fault or listed(*entries)
    taken = ListingTaken(connector.pk, result, is_first)
    asked = {connector.pk: (connector.generation, connector.epoch)}
    counts.keep([taken], asked, owner="lister", now=now)


def free(connector):
    """Let the lease of a listing's own first reads lapse."""
    StoredFacet.objects.filter(connector=connector).update(lease_owner="", lease_until=None)


def read(connector, outcome, *, name="drafts", now=NOW, owner="reader"):
    connector = Connector.objects.get(pk=connector.pk)
    claimed = counts.claim_counts([connector.pk], owner=owner, now=now)
    assert name in [facet.name for facet in claimed.get(connector.pk, [])]
    asked = {connector.pk: (connector.generation, connector.epoch)}
    counts.keep([CountTaken(connector.pk, name, outcome)], asked, owner=owner, now=now)


def shown(workspace, now=NOW):
    workspace.refresh_from_db()
    return [(row.count, row.title, row.state) for row in panel_of(workspace, now).rows]


DRAFTS = "Drafts awaiting review"


@pytest.fixture
def counted(outbound):
    """Outbound, with one facet that counted 3 at NOW."""
    list_facets(outbound, entry())
    free(outbound)
    read(outbound, 3)
    return outbound


def is_due(connector, now):
    return bool(counts.claim_counts([connector.pk], owner="probe", now=now))


@pytest.mark.requirement("F-110", "F-111")
def test_a_count_is_read_again_at_sixty_seconds_and_not_before(counted):
    assert not is_due(counted, at(59.999))
    assert is_due(counted, at(60))


@pytest.mark.requirement("F-110", "F-111", "F-113", "F-115")
@pytest.mark.parametrize(
    ("read_ago", "failed_ago", "expected"),
    [
        (None, None, True),
        (59.999, None, False),
        (60, None, True),
        (601, None, True),
        (None, 14.9, False),
        (None, 15, True),
        (120, 5, False),
        (120, 15, True),
        (10, 30, False),
        # It ended since the last try, or before it.
        (601, 2, True),
        (601, 0.5, False),
        (601, 15, True),
    ],
)
def test_a_count_is_due_when_it_is_not_fresh_and_did_not_just_fail(
    counted, read_ago, failed_ago, expected
):
    moments = {"read_at": read_ago, "failed_at": failed_ago}
    StoredFacet.objects.update(
        **{name: None if ago is None else at(-ago) for name, ago in moments.items()}
    )
    assert is_due(counted, NOW) is expected


@pytest.mark.requirement("F-050", "F-051", "F-056", "F-057")
@pytest.mark.parametrize(
    ("taken_ago", "failed_ago", "expected"),
    [
        (None, None, True),
        (299.999, None, False),
        (300, None, True),
        (None, 59.9, False),
        (None, 60, True),
        (400, 59.9, False),
        (400, 60, True),
    ],
)
def test_a_listing_is_due_every_five_minutes_and_a_minute_after_a_failure(
    outbound, taken_ago, failed_ago, expected
):
    moments = {"taken_at": taken_ago, "failed_at": failed_ago}
    Listing.objects.update(
        epoch=outbound.epoch,
        **{name: None if ago is None else at(-ago) for name, ago in moments.items()},
    )
    assert bool(counts.claim_listings([outbound.pk], owner="a", now=NOW)) is expected


@pytest.mark.requirement("F-112", "F-117", "F-059")
def test_a_read_under_way_is_shared_until_its_lease_expires(counted):
    assert is_due(counted, at(61))
    assert not is_due(counted, at(62))
    assert not is_due(counted, at(80))


@pytest.mark.requirement("F-118")
def test_the_lease_of_a_reader_that_died_expires(counted):
    assert is_due(counted, at(61))
    assert is_due(counted, at(91))


@pytest.mark.requirement("F-114", "F-119")
def test_a_background_read_that_succeeds_replaces_the_count_and_says_so(counted, acme):
    acme.refresh_from_db()
    before = acme.panel_version
    read(counted, 5, now=at(61))
    assert shown(acme, at(61)) == [("5", DRAFTS, "ok")]
    assert acme.panel_version == before + 1
    read(counted, 0, now=at(122))
    assert shown(acme, at(122)) == []
    assert acme.panel_version == before + 2


def test_a_read_that_changes_nothing_on_the_page_pushes_nothing(counted, acme):
    acme.refresh_from_db()
    before = acme.panel_version
    read(counted, 3, now=at(61))
    acme.refresh_from_db()
    assert acme.panel_version == before


@pytest.mark.requirement("F-115", "F-116", "F-120", "F-094")
def test_a_failed_read_shows_only_when_the_count_is_past_ten_minutes(counted, acme):
    read(counted, TIMEOUT, now=at(120))
    assert shown(acme, at(121)) == [("3", DRAFTS, "ok")]
    assert not is_due(counted, at(134))
    read(counted, InvalidRead.NOT_A_COUNT, now=at(599))
    assert shown(acme, at(600)) == [("3", DRAFTS, "ok")]
    read(counted, TIMEOUT, now=at(615))
    assert shown(acme, at(615)) == [(None, DRAFTS, "unavailable")]
    read(counted, 4, now=at(640))
    assert shown(acme, at(640)) == [("4", DRAFTS, "ok")]


@pytest.mark.requirement("F-113")
def test_a_count_past_ten_minutes_is_neither_shown_nor_called_unavailable_before_a_read(
    counted, acme
):
    assert shown(acme, at(601)) == []
    assert panel_of(acme, at(601)).checking == 1
    assert is_due(counted, at(601))


@pytest.mark.requirement("F-133")
def test_a_late_answer_never_overwrites_a_newer_count(counted, acme):
    asked = {counted.pk: (counted.generation, counted.epoch)}
    assert counts.claim_counts([counted.pk], owner="slow", now=at(61))
    read(counted, 7, now=at(100), owner="next")
    counts.keep([CountTaken(counted.pk, "drafts", 6)], asked, owner="slow", now=at(101))
    assert shown(acme, at(101)) == [("7", DRAFTS, "ok")]


@pytest.mark.requirement("F-147", "F-148")
@pytest.mark.parametrize("change", [disconnect_connector, connect_connector, remove_connector])
def test_an_answer_of_a_connector_that_changed_meanwhile_is_dropped(counted, acme, change):
    asked = {counted.pk: (counted.generation, counted.epoch)}
    assert counts.claim_counts([counted.pk], owner="reader", now=at(61))
    pk = counted.pk
    change(counted, by=None)
    counts.keep([CountTaken(pk, "drafts", 9)], asked, owner="reader", now=at(62))
    assert not StoredFacet.objects.filter(count="9").exists()


@pytest.mark.requirement("F-145", "F-146")
def test_a_count_does_not_outlive_the_status_under_which_it_was_read(counted, acme):
    connectors = Connector.objects.filter(pk=counted.pk)
    connectors.update(connection="failed", epoch=2)
    assert [(row.title, row.state) for row in panel_of(acme, at(5)).rows] == [("Failed", "failed")]
    connectors.update(connection="ready")
    assert shown(acme, at(10)) == []
    assert is_due(counted, at(10))


@pytest.mark.requirement("F-107", "F-146", "F-181")
def test_a_connector_that_came_back_is_checked_until_it_is_listed_again(outbound, acme):
    list_facets(outbound)
    assert panel_of(acme, NOW).checking == 0
    Connector.objects.update(epoch=2)
    assert panel_of(acme, at(5)).checking == 1
    list_facets(outbound, now=at(5))
    assert panel_of(acme, at(5)).checking == 0


@pytest.mark.requirement("F-107", "F-145")
def test_a_zero_of_an_earlier_connection_is_nothing_known(counted, acme):
    read(counted, 0, now=at(61))
    Connector.objects.update(epoch=2)
    list_facets(counted, entry(), now=at(70))
    assert panel_of(acme, at(70)).checking == 1
    read(counted, 0, now=at(71))
    assert panel_of(acme, at(71)).checking == 0


@pytest.mark.requirement("F-145", "F-094")
def test_a_first_read_that_fails_after_a_return_does_not_bring_the_old_count_back(counted, acme):
    Connector.objects.update(epoch=2)
    read(counted, TIMEOUT, now=at(20))
    assert shown(acme, at(20)) == [(None, DRAFTS, "unavailable")]


@pytest.mark.requirement("F-133", "F-059")
def test_a_late_listing_never_overwrites_a_newer_one(counted, acme):
    asked = {counted.pk: (counted.generation, counted.epoch)}
    assert counts.claim_listings([counted.pk], owner="slow", now=at(300))
    list_facets(counted, entry(title="Newer"), now=at(330))
    late = ListingTaken(counted.pk, listed(entry("older")), False)
    counts.keep([late], asked, owner="slow", now=at(331))
    assert [title for _, title, _ in shown(acme, at(331))] == ["Newer"]
    assert Listing.objects.get(kind="resources").taken_at == at(330)


def test_listings_that_came_together_are_kept_by_a_few_statements(acme, django_assert_num_queries):
    connectors = [make_connector(acme, f"c{number}") for number in range(20)]
    for connector in connectors:
        list_facets(connector, entry(), entry("sent"))
    ids = [each.pk for each in connectors]
    asked = {each.pk: (each.generation, each.epoch) for each in connectors}
    assert sorted(counts.claim_listings(ids, owner="again", now=at(300))) == ids
    again = [ListingTaken(pk, listed(entry(), entry("sent")), False) for pk in ids]
    changed = ListingTaken(ids[3], listed(entry(), entry("received")), False)
    again[3] = changed
    # Three read the connectors, listings and facets; one replaces a listing and one makes the
    # others young; one adds a facet, one removes one, and one counts the change of the panel.
    with django_assert_num_queries(8 + len(("SAVEPOINT", "RELEASE"))):
        counts.keep(again, asked, owner="again", now=at(300))
    assert Listing.objects.filter(taken_at=at(300), lease_owner="").count() == 20
    names = StoredFacet.objects.values_list("connector_id", "name").order_by("position")
    assert [name for pk, name in names if pk == ids[3]] == ["drafts", "received"]
    assert [name for pk, name in names if pk == ids[4]] == ["drafts", "sent"]


@pytest.mark.requirement("F-057")
def test_a_listing_that_succeeds_leaves_no_failure_behind(outbound):
    list_facets(outbound, fault=TIMEOUT)
    list_facets(outbound, entry(), now=at(60))
    listing = Listing.objects.get(kind="resources")
    assert (listing.failed_at, listing.failure) == (None, "")


@pytest.mark.requirement("F-148")
def test_a_connector_installed_again_under_the_same_name_starts_without_a_count(counted, acme):
    remove_connector(counted, by=None)
    again = make_connector(acme)
    list_facets(again, entry(), now=at(30))
    assert shown(acme, at(30)) == []


@pytest.mark.requirement("F-050", "F-051", "F-060")
def test_a_listing_is_taken_again_at_five_minutes_and_not_before(outbound):
    list_facets(outbound, entry())
    assert counts.claim_listings([outbound.pk], owner="a", now=at(299.999)) == []
    assert counts.claim_listings([outbound.pk], owner="a", now=at(300)) == [outbound.pk]
    assert counts.claim_listings([outbound.pk], owner="b", now=at(300)) == []


@pytest.mark.requirement("F-038", "F-056")
def test_a_listing_that_fails_leaves_the_earlier_one_in_use_and_is_retried_after_a_minute(
    counted, acme
):
    list_facets(counted, now=at(300), fault=TIMEOUT)
    assert shown(acme, at(301)) == [("3", DRAFTS, "ok")]
    assert is_due(counted, at(301))
    assert counts.claim_listings([counted.pk], owner="a", now=at(359)) == []
    assert counts.claim_listings([counted.pk], owner="a", now=at(360)) == [counted.pk]


@pytest.mark.requirement("F-057")
def test_a_first_listing_that_fails_gives_no_rows_and_is_not_waited_for(outbound, acme):
    list_facets(outbound, fault=TIMEOUT)
    panel = panel_of(acme, at(1))
    assert panel.is_empty
    assert panel.checking == 0
    assert Listing.objects.get(connector=outbound, kind="resources").failure == TIMEOUT.message


@pytest.mark.requirement("F-052", "F-053", "F-054")
def test_a_new_listing_adds_changes_and_removes_facets_and_keeps_counts_by_name(counted, acme):
    list_facets(
        counted,
        entry("tasks", title="Tasks blocked"),
        entry(title="Drafts to review", _meta={"ai.nimblebrain/facets": {"level": "info"}}),
        now=at(300),
    )
    assert shown(acme, at(301)) == [("3", "Drafts to review", "ok")]
    free(counted)
    read(counted, 2, name="tasks", now=at(302))
    assert shown(acme, at(302)) == [("2", "Tasks blocked", "ok"), ("3", "Drafts to review", "ok")]
    list_facets(counted, entry("tasks", title="Tasks blocked"), now=at(600))
    assert shown(acme, at(600)) == [("2", "Tasks blocked", "ok")]


@pytest.mark.requirement("F-055")
def test_a_facet_that_moves_keeps_its_count_and_is_read_at_its_new_uri(counted, acme):
    list_facets(counted, entry(uri="acme://moved"), now=at(300))
    assert shown(acme, at(301)) == [("3", DRAFTS, "ok")]
    claimed = counts.claim_counts([counted.pk], owner="reader", now=at(301))
    assert [facet.uri for facet in claimed[counted.pk]] == ["acme://moved"]


@pytest.mark.requirement("F-033")
def test_two_names_with_one_uri_are_two_counts(outbound, acme):
    list_facets(outbound, entry("a", uri="acme://x"), entry("b", uri="acme://x"))
    free(outbound)
    asked = {outbound.pk: (outbound.generation, outbound.epoch)}
    counts.claim_counts([outbound.pk], owner="reader", now=NOW)
    taken = [CountTaken(outbound.pk, "a", 1), CountTaken(outbound.pk, "b", 2)]
    counts.keep(taken, asked, owner="reader", now=NOW)
    assert [count for count, _, _ in shown(acme)] == ["1", "2"]


@pytest.mark.requirement("F-034", "F-123", "F-149")
def test_the_same_server_in_two_workspaces_counts_apart(acme, other):
    ours, theirs = make_connector(acme), make_connector(other)
    for connector, count in ((ours, 1), (theirs, 2)):
        list_facets(connector, entry())
        free(connector)
        read(connector, count)
    assert shown(acme) == [("1", DRAFTS, "ok")]
    assert shown(other) == [("2", DRAFTS, "ok")]


@pytest.mark.requirement("F-073", "F-122")
def test_any_count_and_any_name_can_be_kept(outbound, acme):
    names = ["x" * 10_000, "a:b/c\0d", "Entwürfe 📬"]
    list_facets(outbound, *(entry(name, title="T", uri="acme://x\0") for name in names))
    free(outbound)
    counts.claim_counts([outbound.pk], owner="reader", now=NOW)
    asked = {outbound.pk: (outbound.generation, outbound.epoch)}
    taken = [CountTaken(outbound.pk, name, 10**20 + 1) for name in names]
    counts.keep(taken, asked, owner="reader", now=NOW)
    assert shown(acme) == [("100000000000000000001", "T", "ok")] * 3


@pytest.mark.requirement("F-007", "F-010", "F-013", "F-140", "F-144")
@pytest.mark.parametrize(
    "facts",
    [
        {"advertises_facets": False},
        {"asked_at": None},
        {"connection": "failed"},
        {"connection": "starting"},
        {"credential_refused_at": NOW},
        {"sign_in_needed": True},
    ],
)
def test_nothing_is_listed_or_read_of_a_connector_that_is_not_ready_or_does_not_advertise(
    acme, facts
):
    make_connector(acme, **facts)
    assert due.due_connectors(Q(), NOW) == []


@pytest.mark.requirement("F-013")
def test_nothing_is_listed_or_read_of_a_personal_connector(acme, alice):
    make_connector(None, owner=alice)
    assert due.due_connectors(Q(), NOW) == []


def test_a_workspace_that_only_outside_clients_use_has_its_resources_listed(counted, acme):
    outside = Q(workspace__endpoint_used_at__gt=NOW)
    assert due.due_listings(outside, at(300)) == []
    Workspace.objects.filter(pk=acme.pk).update(endpoint_used_at=at(299))
    assert due.due_listings(in_use_from_outside(at(300)), at(299)) == []
    assert due.due_listings(in_use_from_outside(at(300)), at(300)) == [counted.pk]
