"""A connector's status out of what the database holds, after what really happened to it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from connectors.actions import (
    cancel_connector,
    configure_connector,
    disconnect_connector,
    remove_connector,
    restart_connections,
)
from connectors.models import Connector
from connectors.queries import (
    free_slug,
    is_ready,
    required_of,
    standing_now,
    standings,
    targets_of,
)
from connectors.status import Status, level_of
from tests.connectors.records import (
    MARKER,
    REFUSED,
    added,
    asked,
    contacted,
    failed,
    ready,
)

KEY = [{"kind": "header", "name": "X-Api-Key", "title": "API key", "is_secret": True}]

pytestmark = pytest.mark.django_db


def nobody_asked(workspace):
    added(workspace, required=KEY)


def asked_without_the_key(workspace):
    asked(added(workspace, required=KEY))


def signing_in(workspace, *, minutes, was_ready):
    connector = ready(workspace) if was_ready else asked(added(workspace))
    began = timezone.now() - timedelta(minutes=minutes)
    Connector.objects.filter(pk=connector.pk).update(sign_in_started_at=began, connection="idle")


def restarted(workspace):
    ready(workspace)
    restart_connections(Connector.objects.all(), timezone.now())


def refused_after_it_worked(workspace):
    contacted(ready(workspace), REFUSED)


def disconnected(workspace):
    disconnect_connector(ready(workspace), by=None)


def disconnected_then_its_secret_removed(workspace):
    connector = ready(workspace, required=KEY, secrets=[("header", "X-Api-Key")])
    disconnect_connector(connector, by=None)
    connector.refresh_from_db()
    configure_connector(connector, [], list(connector.secrets.all()), by=None)


def secret_cleared_while_ready(workspace):
    connector = ready(workspace, required=KEY, secrets=[("header", "X-Api-Key")])
    configure_connector(connector, [], list(connector.secrets.all()), by=None)


MATRIX = [
    (nobody_asked, Status.AT_REST),
    (asked_without_the_key, Status.CONFIGURATION_REQUIRED),
    (lambda ws: signing_in(ws, minutes=1, was_ready=False), Status.CONNECTING),
    (lambda ws: signing_in(ws, minutes=16, was_ready=False), Status.AT_REST),
    (lambda ws: signing_in(ws, minutes=16, was_ready=True), Status.RECONNECTION_NEEDED),
    (lambda ws: asked(added(ws)), Status.STARTING),
    (restarted, Status.STARTING),
    (ready, Status.READY),
    (refused_after_it_worked, Status.RECONNECTION_NEEDED),
    (lambda ws: failed(ws, outcome=REFUSED), Status.RECONNECTION_NEEDED),
    (failed, Status.FAILED),
    (disconnected, Status.AT_REST),
    (disconnected_then_its_secret_removed, Status.AT_REST),
    (secret_cleared_while_ready, Status.CONFIGURATION_REQUIRED),
]


@pytest.mark.requirement("F-140", "F-141", "F-142", "F-143", "F-144", "F-145", "F-146")
@pytest.mark.parametrize(("happens", "status"), MATRIX)
def test_what_happened_gives_the_status_and_only_a_ready_one_is_read(acme, happens, status):
    happens(acme)
    (standing,) = standings(Connector.objects.all(), timezone.now())
    assert standing.status is status
    assert Connector.objects.filter(is_ready()).exists() is (status is Status.READY)
    assert (level_of(status) is None) == (status in (Status.AT_REST, Status.READY))


def test_a_removed_connector_stands_nowhere(acme):
    remove_connector(ready(acme), by=None)
    assert standings(Connector.objects.all(), timezone.now()) == []


def test_a_sign_in_that_nobody_finished_leaves_a_working_connector_ready_and_read(acme):
    connector = ready(acme)
    Connector.objects.update(sign_in_started_at=timezone.now() - timedelta(minutes=15))
    connector.refresh_from_db()
    assert standing_now(connector, timezone.now()).status is Status.READY
    assert Connector.objects.filter(is_ready()).exists()


@pytest.mark.parametrize(
    ("happens", "status", "label"),
    [
        (lambda ws: asked(added(ws)), Status.AT_REST, "Not connected"),
        (restarted, Status.AT_REST, "Disconnected"),
        (lambda ws: signing_in(ws, minutes=1, was_ready=False), Status.AT_REST, "Not connected"),
        (
            lambda ws: signing_in(ws, minutes=1, was_ready=True),
            Status.RECONNECTION_NEEDED,
            "Reconnection needed",
        ),
    ],
)
def test_cancel_goes_back_to_what_holds_without_the_attempt(acme, happens, status, label):
    happens(acme)
    cancel_connector(Connector.objects.get(), by=None)
    standing = standing_now(Connector.objects.get(), timezone.now())
    assert (standing.status, standing.label) == (status, label)


def test_cancelling_a_sign_in_leaves_a_working_connector_ready(acme):
    connector = ready(acme)
    Connector.objects.update(sign_in_started_at=timezone.now())
    assert standing_now(Connector.objects.get(), timezone.now()).status is Status.CONNECTING
    cancel_connector(connector, by=None)
    assert standing_now(Connector.objects.get(), timezone.now()).status is Status.READY


def test_what_is_missing_is_named(acme):
    connector = asked(added(acme, url="https://{tenant}.example.com/mcp", required=KEY))
    assert standing_now(connector, timezone.now()).missing == ("X-Api-Key", "tenant")


def test_a_header_of_variables_needs_its_variables_and_is_sent_filled_in(acme):
    template = {
        "kind": "header",
        "name": "Authorization",
        "title": "",
        "template": "Token {key}",
    }
    connector = asked(added(acme, required=[template], secrets=[("variable", "key")]))
    assert required_of(connector) == [("variable", "key")]
    target = targets_of(Connector.objects.all(), timezone.now())[connector.pk]
    assert target.headers == (("Authorization", f"Token {MARKER}"),)
    connector.secrets.all().delete()
    assert standing_now(connector, timezone.now()).missing == ("key",)


def test_secrets_reach_the_target_and_not_its_text(acme):
    secrets = [("bearer", "token"), ("header", "X-Team"), ("variable", "tenant")]
    connector = asked(added(acme, url="https://a.example.com/{tenant}/mcp", secrets=secrets))
    target = targets_of(Connector.objects.all(), timezone.now())[connector.pk]
    assert dict(target.headers) == {"Authorization": f"Bearer {MARKER}", "X-Team": MARKER}
    assert target.url == f"https://a.example.com/{MARKER}/mcp"
    assert MARKER not in repr(target)


def test_a_value_cannot_leave_its_place_in_the_address(acme):
    hostile = ("variable", "tenant", "x/../../@evil.example.com/?#")
    connector = asked(added(acme, url="https://a.example.com/{tenant}/mcp", secrets=[hostile]))
    target = targets_of(Connector.objects.all(), timezone.now())[connector.pk]
    assert target.url == "https://a.example.com/x%2F..%2F..%2F%40evil.example.com%2F%3F%23/mcp"


def test_nobody_asked_means_no_target(acme):
    added(acme)
    asked(added(acme, "books", required=KEY))
    assert targets_of(Connector.objects.all(), timezone.now()) == {}


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Mail", "mail"),
        ("Legacy CRM (old)", "legacy-crm-old"),
        ("snake_case__name", "snake-case-name"),
        ("邮件", "connector"),
        ("--", "connector"),
        ("Add", "add-2"),
        ("x" * 100, "x" * 36),
        ("CRM", "crm-3"),
    ],
)
def test_a_free_slug_comes_of_the_name(acme, other, name, slug):
    for workspace, taken in [(acme, "crm"), (acme, "crm-2"), (other, "mail")]:
        added(workspace, taken)
    assert free_slug(acme, name) == slug


def test_statements_do_not_grow_with_the_connectors(acme, django_assert_max_num_queries):
    for number in range(5):
        added(acme, f"c{number}", required=KEY)
    with django_assert_max_num_queries(2):
        assert len(standings(Connector.objects.all(), timezone.now())) == 5
