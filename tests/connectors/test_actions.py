from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.exceptions import ValidationError
from django.db import connection
from django.utils import timezone

from connectors.actions import (
    check_soon,
    configure_connector,
    connect_connector,
    disconnect_connector,
    remove_connector,
)
from connectors.check_leases import claim_checks
from connectors.models import Check, Connector, Listing, Secret, ToolCall
from connectors.sessions import Fault, FaultKind
from tests.connectors.records import (
    ANSWERED,
    MARKER,
    REFUSED,
    UNREACHABLE,
    added,
    asked,
    contacted,
    failed,
    ready,
    secret,
)
from workspaces.models import AuditEntry

pytestmark = pytest.mark.django_db


def acts():
    return list(AuditEntry.objects.order_by("pk").values_list("action", flat=True))


def test_a_new_connector_rests_with_a_place_for_each_listing_and_its_secrets_sealed(acme):
    connector = added(acme, secrets=[("bearer", "token")])
    assert connector.asked_at is None
    assert Listing.objects.filter(connector=connector, taken_at=None).count() == 3
    with connection.cursor() as cursor:
        cursor.execute("SELECT value FROM connectors_secret")
        assert MARKER.encode() not in bytes(cursor.fetchone()[0])
    assert Secret.objects.get().value == MARKER
    assert acts() == ["connector added"]


@pytest.mark.parametrize(
    "fields",
    [{"slug": "add"}, {"slug": "Mail"}, {"slug": "-"}, {"slug": "x" * 41}, {"name": ""}],
)
def test_what_cannot_be_a_connector_is_refused(acme, fields):
    with pytest.raises(ValidationError):
        added(acme, **fields)


def test_a_slug_belongs_to_one_connector_of_a_workspace(acme, other):
    added(acme)
    added(other)
    with pytest.raises(ValidationError):
        added(acme)


def test_disconnecting_twice_is_one_act(acme, alice):
    connector = ready(acme)
    disconnect_connector(connector, by=alice)
    disconnect_connector(connector, by=alice)
    assert acts().count("connector disconnected") == 1
    connector.refresh_from_db()
    assert (connector.asked_at, connector.disconnected_by) == (None, alice)


def test_an_answer_to_an_older_generation_is_not_believed(acme):
    connector = asked(added(acme))
    before = Connector.objects.get()
    connect_connector(connector, by=None)
    contacted(before, ANSWERED)
    assert Connector.objects.get().connection == "starting"
    assert not Check.objects.exists()


def test_an_answer_after_a_disconnect_is_not_believed(acme):
    connector = asked(added(acme))
    disconnect_connector(connector, by=None)
    contacted(connector, ANSWERED)
    assert Connector.objects.get().connection == "idle"


def test_what_a_server_said_of_itself_is_kept_with_the_check(acme):
    connector = ready(acme)
    assert (connector.revision, connector.server_name) == ("2026-07-28", "mail-server")
    assert connector.advertises_facets
    check = Check.objects.get()
    assert (check.is_ok, check.latency_ms, check.result) == (True, 12, "Ready")


def test_leaving_ready_starts_a_new_epoch_and_a_failed_retry_changes_nothing_shown(acme):
    connector = ready(acme)
    epoch = connector.epoch
    connector = contacted(connector, UNREACHABLE)
    since = connector.connection_since
    assert connector.epoch == epoch + 1
    acme.refresh_from_db()
    version = acme.panel_version
    connector = contacted(connector, UNREACHABLE, now=timezone.now() + timedelta(seconds=20))
    acme.refresh_from_db()
    assert (connector.epoch, connector.connection_since) == (epoch + 1, since)
    assert acme.panel_version == version


def test_failures_are_counted_and_retried_within_5_minutes(acme):
    connector = asked(added(acme))
    now = timezone.now()
    pauses = []
    for _ in range(8):
        connector = contacted(connector, UNREACHABLE, now=now)
        pauses.append((connector.check_due_at - now).total_seconds())
    assert all(0 <= pause <= 300 for pause in pauses)
    assert connector.attempt == 8
    assert contacted(connector, ANSWERED, now=now).attempt == 0


@pytest.mark.parametrize(("wanted", "given"), [(900, 900), (10**9, 3600)])
def test_a_server_that_asks_for_a_pause_gets_it_up_to_an_hour(acme, wanted, given):
    fault = Fault(FaultKind.HTTP, "Busy.", http_status=503, retry_after_seconds=wanted)
    now = timezone.now()
    connector = contacted(asked(added(acme)), fault, now=now)
    assert (connector.check_due_at - now).total_seconds() == given


def test_a_rate_limit_makes_no_ready_connector_failed(acme):
    limited = Fault(FaultKind.RATE_LIMITED, "Too many requests.", retry_after_seconds=600)
    now = timezone.now()
    connector = contacted(ready(acme), limited, now=now)
    assert connector.connection == "ready"
    assert (connector.check_due_at - now).total_seconds() >= 600


@pytest.mark.requirement("F-143")
def test_a_refused_credential_waits_for_a_person(acme):
    connector = contacted(ready(acme), REFUSED)
    assert connector.credential_refused_at is not None
    assert connector.check_due_at is None


def test_a_new_secret_starts_afresh_and_forgets_the_refusal(acme, alice):
    connector = contacted(ready(acme, secrets=[("bearer", "token")]), REFUSED)
    generation = connector.generation
    configure_connector(connector, [secret(value="another")], [], by=alice)
    connector.refresh_from_db()
    assert connector.generation == generation + 1
    assert (connector.credential_refused_at, connector.connection) == (None, "starting")
    stored = Secret.objects.get()
    assert (stored.value, stored.set_by) == ("another", alice)


def test_a_new_address_resets_the_connection_and_a_new_name_does_not(acme):
    connector = ready(acme)
    generation, epoch = connector.generation, connector.epoch
    connector.name = "Post"
    configure_connector(connector, [], [], by=None)
    connector.refresh_from_db()
    assert (connector.generation, connector.connection) == (generation, "ready")
    connector.url = "https://post.example.com/mcp"
    configure_connector(connector, [], [], by=None)
    connector.refresh_from_db()
    assert (connector.generation, connector.epoch) == (generation + 1, epoch + 1)
    assert (connector.connection, connector.capabilities) == ("starting", None)


def test_configuring_a_connector_at_rest_leaves_it_at_rest(acme):
    connector = added(acme)
    configure_connector(connector, [secret()], [], by=None)
    connector.refresh_from_db()
    assert (connector.asked_at, connector.connection) == (None, "idle")
    assert connector.check_due_at is None


def test_removing_keeps_the_traces_and_nothing_else(acme, alice):
    connector = ready(acme, secrets=[("bearer", "token")])
    call = ToolCall.objects.create(
        workspace=acme,
        connector=connector,
        connector_name="Mail",
        tool="send",
        caller="agent",
        started_at=timezone.now(),
        duration_ms=1,
        outcome="ok",
    )
    remove_connector(connector, by=alice)
    call.refresh_from_db()
    assert (call.connector, call.connector_name) == (None, "Mail")
    assert not (Connector.objects.exists() or Secret.objects.exists() or Listing.objects.exists())
    assert AuditEntry.objects.last().subject == "Mail"


def test_two_processes_share_one_check(acme):
    connector = asked(added(acme))
    now = timezone.now()
    assert claim_checks([connector.pk], now) == {connector.pk: connector.generation}
    assert claim_checks([connector.pk], now) == {}
    assert claim_checks([connector.pk], now + timedelta(seconds=31))


def test_check_soon_makes_due_only_what_somebody_asked_for(acme):
    resting, working = added(acme), ready(acme, "crm")
    Connector.objects.update(check_due_at=None)
    for connector in (resting, working):
        check_soon(connector.pk)
    resting.refresh_from_db()
    working.refresh_from_db()
    assert resting.check_due_at is None
    assert working.check_due_at <= timezone.now()


def test_a_failure_is_told_in_words_and_in_detail(acme):
    connector = failed(acme, outcome=Fault(FaultKind.HTTP, "It answered 502.", http_status=502))
    assert connector.failure == "It answered 502."
    assert "HTTP 502" in connector.failure_detail
