"""Tokens: shown once, kept nowhere, stopped at once."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from html import unescape

import pytest
from django.contrib.sessions.models import Session
from django.utils import timezone

from connectors.endpoint.catalogue import public_prefix
from workspaces.actions import create_token, revoke_token
from workspaces.models import ApiToken, AuditEntry, repeatable_token
from workspaces.queries import live_token

TOKEN = re.compile(r"nb_[A-Za-z0-9_-]{40,}")


def _create(client, **sent):
    return client.post("/w/acme/tokens/", {"name": "Laptop", "expiry": "30", **sent})


def test_a_token_is_in_the_answer_to_its_form_and_nowhere_else(acme, bob, bob_client):
    answer = _create(bob_client)
    html = answer.content.decode()
    [text] = set(TOKEN.findall(html))
    assert "no-store" in answer["Cache-Control"]
    assert "You will not see it again" in html
    token = live_token(text, "acme", timezone.now())
    assert token is not None
    assert (token.user, token.workspace, token.allowed_tools) == (bob, acme, None)
    assert text not in bob_client.get("/w/acme/tokens/").content.decode()
    assert f"{text[:8]}…" in bob_client.get("/w/acme/tokens/").content.decode()
    assert text not in str([*ApiToken.objects.values(), *AuditEntry.objects.values()])
    assert all(text not in str(session.get_decoded()) for session in Session.objects.all())


def test_the_client_example_is_ready_to_use(bob_client):
    html = unescape(_create(bob_client).content.decode())
    [text] = re.findall(r'<pre id="example"[^>]*>(.*?)</pre>', html, re.S)
    example = json.loads(text)
    server = example["mcpServers"]["acme"]
    assert server["url"] == "http://testserver/mcp/acme"
    assert TOKEN.fullmatch(server["headers"]["Authorization"].removeprefix("Bearer "))


def test_a_form_that_is_sent_again_makes_no_second_token(bob_client):
    _create(bob_client)
    html = _create(bob_client).content.decode()
    assert "You already have a token with this name." in html
    assert not TOKEN.search(html)
    assert ApiToken.objects.count() == 1


def test_a_form_that_comes_twice_at_once_is_answered_with_its_token_twice(bob, bob_client):
    answers = [_create(bob_client, once="a-b-c").content.decode() for _ in range(2)]
    first, second = ({*TOKEN.findall(each)} for each in answers)
    assert first == second
    assert len(first) == 1
    assert ApiToken.objects.count() == AuditEntry.objects.filter(action="token made").count() == 1


def test_two_clicks_that_are_answered_side_by_side_make_one_token(acme, bob, bob_client):
    """The other one came between this one's look at the names and its own token."""
    text = repeatable_token("a-b-c", bob, acme)
    create_token(acme, bob, "Of the other click", text=text)
    assert text in _create(bob_client, once="a-b-c").content.decode()
    assert ApiToken.objects.count() == 1


def test_a_form_is_answered_with_its_token_for_a_minute_and_to_its_sender_alone(
    acme, bob, alice_client, bob_client, time_machine
):
    begun = datetime(2026, 5, 1, 12, tzinfo=UTC)
    time_machine.move_to(begun, tick=False)
    [text] = {*TOKEN.findall(_create(bob_client, once="a-b-c").content.decode())}
    assert text not in _create(alice_client, once="a-b-c").content.decode()
    time_machine.move_to(begun + timedelta(seconds=61), tick=False)
    assert not TOKEN.search(_create(bob_client, once="a-b-c").content.decode())
    again = _create(bob_client, once="a-b-c", name="Another").content.decode()
    assert "This form was sent already." in again
    assert not TOKEN.search(again)
    [fresh] = re.findall(r'name="once" value="([^"]+)"', again)
    assert TOKEN.search(_create(bob_client, once=fresh, name="Another").content.decode())


def test_a_revoked_token_is_not_shown_again(bob, bob_client):
    [text] = {*TOKEN.findall(_create(bob_client, once="a-b-c").content.decode())}
    revoke_token(ApiToken.objects.get(), by=bob)
    assert text not in _create(bob_client, once="a-b-c").content.decode()


def test_a_name_is_free_again_once_its_token_has_ended(acme, bob, bob_client):
    create_token(acme, bob, "Laptop", expires_at=timezone.now() - timedelta(days=1))
    assert TOKEN.search(_create(bob_client).content.decode())


@pytest.mark.parametrize(
    ("expiry", "date", "expected"),
    [
        ("30", "", datetime(2026, 5, 31, 12, tzinfo=UTC)),
        ("90", "1999-01-01", datetime(2026, 7, 30, 12, tzinfo=UTC)),
        ("date", "2026-05-01", datetime(2026, 5, 1, 23, 59, 59, tzinfo=UTC)),
        ("date", "2027-02-28", datetime(2027, 2, 28, 23, 59, 59, tzinfo=UTC)),
    ],
)
def test_a_token_expires_as_chosen(acme, bob, rf, time_machine, expiry, date, expected, client):
    time_machine.move_to(datetime(2026, 5, 1, 12, tzinfo=UTC), tick=False)
    client.force_login(bob, backend="django.contrib.auth.backends.ModelBackend")
    _create(client, expiry=expiry, date=date)
    assert ApiToken.objects.get().expires_at == expected


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": "\u200b\u2060"},
        {"expiry": "0"},
        {"expiry": "date"},
        {"expiry": "date", "date": "2020-01-01"},
        {"expiry": "date", "date": "31.12.2099 <b>"},
        {"tools": "\n".join(f"tool_{number}" for number in range(51))},
        {"tools": "x" * 129},
        {"tools": "one two"},
    ],
)
def test_a_wrong_field_is_named_and_no_token_made(bob_client, wrong):
    html = _create(bob_client, **wrong).content.decode()
    assert "There is a problem" in html
    assert ApiToken.objects.count() == 0


def test_allowed_tools_are_one_pattern_a_line(bob_client):
    _create(bob_client, tools="crm__*\r\n\r\n  mail__send \ncrm__*")
    assert ApiToken.objects.get().allowed_tools == ["crm__*", "mail__send"]


def test_the_pattern_that_the_page_suggests_fits_the_names_of_tools(bob_client):
    page = bob_client.get("/w/acme/tokens/").content.decode()
    [pattern] = re.findall(r"\b(crm\S*\*)", page)
    assert fnmatchcase(f"{public_prefix('crm', is_personal=False)}find_signals", pattern)


def test_a_token_stops_when_it_expires(acme, bob, time_machine):
    now = timezone.now()
    _, text = create_token(acme, bob, "Laptop", expires_at=now)
    assert live_token(text, "acme", now - timedelta(microseconds=1))
    assert live_token(text, "acme", now) is None


def test_revoking_names_the_token_and_stops_it_at_once(acme, bob, bob_client):
    token, text = create_token(acme, bob, "Laptop")
    page = bob_client.get(f"/w/acme/tokens/{token.pk}/revoke/").content.decode()
    assert "<bdi>Laptop</bdi>" in page
    assert "never" in page
    answer = bob_client.post(f"/w/acme/tokens/{token.pk}/revoke/", follow=True)
    assert "<bdi>Laptop</bdi> no longer works." in answer.content.decode()
    assert live_token(text, "acme", timezone.now()) is None
    assert "No tokens yet." in answer.content.decode()
    assert bob_client.post(f"/w/acme/tokens/{token.pk}/revoke/").status_code == 302
    assert AuditEntry.objects.filter(action="token revoked").count() == 1


def test_a_member_sees_and_stops_their_own_tokens_only(acme, alice, bob, alice_client, bob_client):
    hers, _ = create_token(acme, alice, "Desk of Alice")
    his, _ = create_token(acme, bob, "Laptop of Bob")
    assert "Desk of Alice" not in bob_client.get("/w/acme/tokens/").content.decode()
    assert bob_client.get(f"/w/acme/tokens/{hers.pk}/revoke/").status_code == 404
    bob_client.post(f"/w/acme/tokens/{hers.pk}/revoke/")
    assert ApiToken.objects.get(pk=hers.pk).revoked_at is None
    assert "Laptop of Bob" in alice_client.get("/w/acme/tokens/").content.decode()
    alice_client.post(f"/w/acme/tokens/{his.pk}/revoke/")
    assert ApiToken.objects.get(pk=his.pk).revoked_at is not None
