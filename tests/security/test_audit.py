"""Each act that changes who may do what, or how a server is reached, leaves one line."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from connectors.declared import Declared, as_json
from connectors.endpoint.stored import admit, forget
from connectors.models import Connector, OAuthGrant
from connectors.oauth.acts import finish_sign_in
from connectors.oauth.tokens import Client as OAuthClient
from connectors.oauth.tokens import Tokens
from connectors.tasks import check_connector
from tests.connectors.records import MARKER, added, ready, sheet
from workspaces.actions import create_token, note_token_use
from workspaces.models import ApiToken, AuditEntry, Membership
from workspaces.sign_in_links import sign_in_path

CONNECTOR = "/w/acme/connectors/mail/"


@pytest.fixture(autouse=True)
def _nobody_works(monkeypatch):
    """The broker takes what is queued; nobody does it."""
    monkeypatch.setattr(check_connector, "delay", lambda pk: None)


def lines(acme):
    """Action, subject and who, oldest first."""
    found = AuditEntry.objects.filter(workspace=acme).order_by("pk")
    return [(each.action, each.subject, str(each.user or "")) for each in found]


def last(acme):
    return lines(acme)[-1]


def test_everything_that_happens_to_a_connector(acme, alice, alice_client):
    alice_client.post("/w/acme/connectors/add/", sheet(**{"secret-bearer-token": MARKER}))
    assert last(acme) == ("connector added", "Mail: bearer token set", "Alice")
    alice_client.post(f"{CONNECTOR}connect/")
    assert last(acme) == ("connector connected", "Mail: bearer token used", "Alice")
    alice_client.post(f"{CONNECTOR}cancel/")
    assert last(acme) == ("connection cancelled", "Mail", "Alice")
    alice_client.post(f"{CONNECTOR}connect/")
    changed = sheet(
        url="https://mail.example.com/v2",
        **{
            "secret-clear-bearer-token": "on",
            "headers-0-name": "X-Key",
            "headers-0-value": MARKER,
        },
    )
    assert alice_client.post(f"{CONNECTOR}configure/", changed).status_code == 302
    said = "Mail: another address, header X-Key set, bearer token cleared"
    assert last(acme) == ("connector configured", said, "Alice")
    alice_client.post(f"{CONNECTOR}disconnect/")
    assert last(acme) == ("connector disconnected", "Mail", "Alice")
    alice_client.post(f"{CONNECTOR}remove/", {"typed": "Mail"})
    assert last(acme) == ("connector removed", "Mail", "Alice")
    assert MARKER not in str(lines(acme))


def test_a_sign_in_to_a_server(acme, alice):
    facts = dict.fromkeys(["issuer", "token_endpoint", "resource", "scope"], "https://x.example")
    tokens = Tokens(MARKER, MARKER, None, None)
    connector = added(acme)
    assert finish_sign_in(connector, facts, OAuthClient("id"), tokens, alice, connector.created_at)
    assert last(acme) == ("signed in to connector", "Mail", "Alice")


def grant(connector):
    now = connector.created_at
    facts = dict.fromkeys(["issuer", "token_endpoint", "resource", "scope"], "https://x.example")
    tokens = {"access_token": MARKER, "issued_at": now, "signed_in_at": now, "client": "{}"}
    OAuthGrant.objects.create(connector=connector, **facts, **tokens)


def test_who_makes_the_host_use_a_stored_secret(acme, alice_client, bob_client):
    """One line for the act of a person; what the host then does by itself is none."""
    secrets = [("bearer", "token"), ("header", "X-Key"), ("client", "id")]
    ready(acme, url="http://127.0.0.1:9/mcp", secrets=secrets)
    used = "Mail: bearer token used, header X-Key used"
    bob_client.post(f"{CONNECTOR}check/")
    assert last(acme) == ("connector checked", used, "Bob")
    alice_client.post(f"{CONNECTOR}diagnosis/")
    assert last(acme) == ("connector diagnosed", used, "Alice")
    for act in ("disconnect", "connect"):
        alice_client.post(f"{CONNECTOR}{act}/")
    assert last(acme) == ("connector connected", used, "Alice")
    for act in ("check", "diagnose"):
        with pytest.raises(CommandError):
            call_command("connector", act, "acme", "mail", stdout=StringIO())
    assert [each[::2] for each in lines(acme)[-2:]] == [
        ("connector checked", ""),
        ("connector diagnosed", ""),
    ]


def test_a_sign_in_is_a_secret_that_is_used_and_a_plain_setting_is_none(acme, alice_client):
    connector = ready(acme, secrets=[("variable", "region", "eu")])
    connector.required = as_json([Declared("variable", "region", is_secret=False)])
    connector.save(update_fields=["required"])
    before = lines(acme)
    alice_client.post(f"{CONNECTOR}check/")
    assert lines(acme) == before
    grant(connector)
    alice_client.post(f"{CONNECTOR}check/")
    assert last(acme) == ("connector checked", "Mail: sign-in used", "Alice")


def test_an_agents_token_is_one_line_on_each_day_that_it_is_used(acme, bob):
    token, text = create_token(acme, bob, "Laptop")
    subject = f"{token.start}… Laptop of bob@example.com"
    start = datetime(2026, 12, 1, 22, 0, tzinfo=UTC)
    for minutes in (0, 1, 30, 119, 120, 150):
        forget()
        assert admit(text, "acme", start + timedelta(minutes=minutes)) is not None
    used = [each for each in lines(acme) if each[0] == "token used"]
    assert used == [("token used", subject, "Bob")] * 2
    ApiToken.objects.update(last_used_at=None)
    for _ in range(2):  # Two processes that both found it unused.
        note_token_use(token, start)
    assert len([each for each in lines(acme) if each[0] == "token used"]) == 3


def test_everything_that_happens_to_a_token(acme, alice_client, bob, bob_client):
    bob_client.post("/w/acme/tokens/", {"name": "Laptop", "expiry": "30"})
    token = ApiToken.objects.get()
    subject = f"{token.start}… Laptop of bob@example.com"
    assert last(acme) == ("token made", subject, "Bob")
    alice_client.post(f"/w/acme/tokens/{token.pk}/revoke/")
    assert last(acme) == ("token revoked", subject, "Alice")
    alice_client.post(f"/w/acme/tokens/{token.pk}/revoke/")
    assert len(lines(acme)) == 2


def test_everything_that_happens_to_a_member(acme, alice_client, bob, carol):
    alice_client.post("/w/acme/members/", {"email": carol.email, "role": "member"})
    assert last(acme) == ("member added", "carol@example.com: Member", "Alice")
    alice_client.post(f"/w/acme/members/{carol.pk}/", {"role": "admin"})
    assert last(acme) == ("role changed", "carol@example.com: Admin", "Alice")
    token, _ = create_token(acme, carol, "Laptop")
    alice_client.post(f"/w/acme/members/{carol.pk}/remove/")
    assert lines(acme)[-2:] == [
        ("member removed", "carol@example.com", "Alice"),
        ("token revoked", f"{token.start}… Laptop of carol@example.com", "Alice"),
    ]


@pytest.mark.parametrize("page", ["/sign-in/", "/admin/login/"])
def test_a_sign_in_with_a_password_by_whichever_page(acme, alice, page):
    alice.is_staff = True
    alice.save()
    form = {"email": alice.email, "username": alice.email}
    Client().post(page, {**form, "password": "wrong"})
    assert lines(acme) == []
    Client().post(page, {**form, "password": "Alice-secret-1"})
    assert lines(acme) == [("signed in", "alice@example.com", "Alice")]


def test_a_sign_in_by_link_and_the_workspaces_own_settings(acme, alice, alice_client):
    Client().get(sign_in_path(alice))
    assert last(acme) == ("signed in by link", "alice@example.com", "Alice")
    alice_client.post("/w/acme/settings/", {"name": "Acme Inc", "has_resource_tools": "on"})
    assert lines(acme)[-2:] == [
        ("workspace renamed", "Acme Inc", "Alice"),
        ("resource tools", "on", "Alice"),
    ]


def test_what_operators_do_in_the_admin_site(acme, alice, alice_client, bob):
    alice.is_staff = alice.is_superuser = True
    alice.save()
    alice_client.post(
        f"/admin/workspaces/workspace/{acme.pk}/change/",
        {"slug": "acme", "name": "Renamed", "has_resource_tools": "on"},
    )
    assert lines(acme)[-2:] == [
        ("workspace renamed", "Renamed", "Alice"),
        ("resource tools", "on", "Alice"),
    ]
    membership = Membership.objects.get(user=bob)
    alice_client.post(f"/admin/workspaces/membership/{membership.pk}/change/", {"role": "admin"})
    assert last(acme) == ("role changed", "bob@example.com: Admin", "Alice")


def test_a_forbidden_act_leaves_no_line_and_changes_nothing(acme, bob_client):
    before = lines(ready(acme).workspace)
    for act in ("disconnect", "connect", "configure", "remove"):
        assert bob_client.post(f"{CONNECTOR}{act}/", sheet(typed="Mail")).status_code == 403
    assert lines(acme) == before
    assert Connector.objects.get().asked_at is not None
