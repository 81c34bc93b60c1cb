"""Passwords, links, and the way out."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync
from django.db import connections
from django.test import Client
from django.utils import timezone

from workspaces import push
from workspaces.models import AuditEntry, User
from workspaces.sign_in_links import sign_in_path

PASSWORD = "Alice-secret-1"


def _sign_in(client, email="alice@example.com", password=PASSWORD, **more):
    return client.post("/sign-in/", {"email": email, "password": password, **more})


def _is_signed_in(client):
    return client.get("/workspaces/").status_code == 200


@pytest.fixture
def pushed(monkeypatch):
    """The messages that open pages got."""
    sent = []
    monkeypatch.setattr(push, "_poke", lambda workspace_id, kind: sent.append((workspace_id, kind)))
    return sent


@pytest.mark.parametrize("email", ["alice@example.com", " ALICE@Example.com "])
def test_an_address_in_any_case_and_its_password_sign_in(alice, email):
    client = Client()
    answer = _sign_in(client, email)
    assert (answer.status_code, answer["Location"]) == (302, "/")
    assert _is_signed_in(client)


def test_signing_in_starts_a_new_session(alice):
    client = Client()
    session = client.session
    session["planted"] = True
    session.save()
    _sign_in(client)
    assert client.session.session_key != session.session_key


@pytest.mark.parametrize(
    ("email", "password"),
    [
        ("alice@example.com", "wrong"),
        ("nobody@example.com", PASSWORD),
        ("off@example.com", "Off-secret-1"),
        ("link-only@example.com", ""),
        ("no address at all", "x"),
    ],
)
def test_any_failure_says_the_same_and_keeps_the_address(alice, email, password):
    User.objects.create_user("off@example.com", "Off-secret-1", is_active=False)
    User.objects.create_user("link-only@example.com", None)
    client = Client()
    html = _sign_in(client, email, password or "!").content.decode()
    assert html.count("Email or password is wrong.") == 1
    assert f'value="{email}"' in html
    assert not _is_signed_in(client)


def test_empty_fields_are_named_above_the_form_and_beside_the_field(db):
    html = _sign_in(Client(), "", "").content.decode()
    assert '<a href="#id_email">Enter your email address.</a>' in html
    assert 'aria-describedby="id_password_error"' in html
    assert 'tabindex="-1" autofocus' in html


@pytest.mark.parametrize("field", ["email", "password"])
def test_bytes_that_no_database_takes_are_refused(alice, field):
    assert _sign_in(Client(), **{field: "a\0b"}).status_code == 200


@pytest.mark.parametrize("onward", ["/w/acme/tokens/", "/w/acme/?a=b&c=d#x"])
def test_signing_in_leads_on_to_a_page_of_ours(alice, onward):
    assert _sign_in(Client(), next=onward)["Location"] == onward
    client = Client()
    _sign_in(client)
    assert client.get("/sign-in/", {"next": onward})["Location"] == onward


@pytest.mark.parametrize(
    "onward",
    [
        "https://evil.example/",
        "//evil.example/",
        "///evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "/\t/evil.example",
        "\x00//evil.example",
        "javascript:alert(1)",
        "http:///evil.example",
        "w/acme/",
        "",
    ],
)
def test_signing_in_leads_nowhere_else(alice, onward):
    client = Client()
    assert _sign_in(client, next=onward)["Location"] == "/"
    assert client.get("/sign-in/", {"next": onward})["Location"] == "/"


def test_who_is_signed_in_is_not_sent_round_in_a_circle(alice_client):
    assert alice_client.get("/sign-in/", {"next": "/sign-in/"})["Location"] == "/sign-in/"
    assert alice_client.get("/sign-in/")["Location"] == "/"


def _fail(client, times, email="alice@example.com"):
    for _ in range(times):
        answer = _sign_in(client, email, "wrong")
    return answer


def test_ten_wrong_passwords_lock_an_address_and_say_for_how_long(alice):
    assert _fail(Client(), 9).status_code == 200
    answer = _fail(Client(), 1)
    assert answer.status_code == 429
    assert answer["Retry-After"] == "900"
    assert "Wait 15 minutes" in answer.content.decode()
    assert 'value="alice@example.com"' in answer.content.decode()
    client = Client()
    assert _sign_in(client).status_code == 429
    assert not _is_signed_in(client)


@pytest.mark.parametrize(
    "spelling", ["ALICE@EXAMPLE.COM", " alice@example.com", "al\u0131ce@example.com"]
)
def test_another_spelling_of_an_address_does_not_get_ten_more_tries(alice, spelling):
    _fail(Client(), 9)
    assert _fail(Client(), 1, spelling).status_code == 429


def test_a_lock_holds_for_one_address_only(alice, bob):
    _fail(Client(), 10)
    assert _sign_in(Client(), "bob@example.com", "Bob-secret-1").status_code == 302


def test_a_lock_ends_by_itself(alice, time_machine):
    now = timezone.now()
    time_machine.move_to(now, tick=False)
    _fail(Client(), 10)
    time_machine.move_to(now + timedelta(minutes=15, seconds=1), tick=False)
    assert _sign_in(Client()).status_code == 302


def test_a_right_password_forgets_the_wrong_ones(alice):
    client = Client()
    _fail(client, 9)
    assert _sign_in(client).status_code == 302
    assert _fail(Client(), 9).status_code == 200


def test_djangos_own_admin_page_shares_the_lock(alice):
    for _ in range(10):
        answer = Client().post(
            "/admin/login/", {"username": "Alice@example.com", "password": "wrong"}
        )
    assert answer.status_code == 429
    assert _sign_in(Client()).status_code == 429


@pytest.mark.django_db(transaction=True)
def test_the_lock_answers_under_asgi_too(alice, async_client):
    async def fail():
        for _ in range(10):
            sent = {"email": "alice@example.com", "password": "wrong"}
            answer = await async_client.post("/sign-in/", sent)
        return answer

    def in_its_own_loop():
        try:
            return async_to_sync(fail)()
        finally:
            connections.close_all()

    # Playwright may keep a loop running in the main thread.
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(in_its_own_loop).result(timeout=30)
    assert answer.status_code == 429
    assert 'value="alice@example.com"' in answer.content.decode()


def test_signing_in_needs_the_forms_token(alice):
    strict = Client(enforce_csrf_checks=True)
    assert _sign_in(strict).status_code == 403


def test_signing_out_ends_the_session_and_the_open_pages(
    acme, alice_client, pushed, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        answer = alice_client.post("/sign-out/", follow=True)
    assert "You are signed out." in answer.content.decode()
    assert not _is_signed_in(alice_client)
    assert pushed == [(acme.pk, "access.changed")]
    assert alice_client.post("/sign-out/").status_code == 302


def test_a_link_signs_in_once_and_the_workspaces_know(acme, alice):
    path = sign_in_path(alice)
    client = Client()
    assert client.get(path)["Location"] == "/"
    assert _is_signed_in(client)
    entry = AuditEntry.objects.get(workspace=acme)
    assert (entry.user, entry.action) == (alice, "signed in by link")
    again = Client().get(path)
    assert again.status_code == 410
    assert "This link no longer works" in again.content.decode()
    assert 'href="/sign-in/"' in again.content.decode()


def test_a_link_made_in_the_second_of_a_sign_in_works_once_too(alice, time_machine):
    at = timezone.now().replace(microsecond=100)
    time_machine.move_to(at, tick=False)
    _sign_in(Client())
    alice.refresh_from_db()
    path = sign_in_path(alice)
    time_machine.move_to(at.replace(microsecond=900), tick=False)
    assert Client().get(path).status_code == 302
    assert Client().get(path).status_code == 410


def test_a_look_at_a_link_does_not_use_it_up(alice):
    path = sign_in_path(alice)
    assert Client().head(path).status_code == 405
    assert Client().get(path).status_code == 302


def test_a_link_is_for_an_hour(alice, time_machine):
    now = timezone.now()
    time_machine.move_to(now, tick=False)
    path = sign_in_path(alice)
    time_machine.move_to(now + timedelta(seconds=3601), tick=False)
    assert Client().get(path).status_code == 410


def test_a_link_of_an_account_that_was_switched_off_is_refused(alice):
    path = sign_in_path(alice)
    User.objects.update(is_active=False)
    assert Client().get(path).status_code == 410


@pytest.mark.parametrize(
    "path",
    ["MQ/x/", "%00/x-y/", "!!/a-b/", "MQ/-/", "é/é-é/", f"{'OTk5' * 40}/abc-def/", "_/z-z/"],
)
def test_a_link_that_nobody_made_is_refused_in_words(alice, path):
    assert Client().get(f"/sign-in/link/{path}").status_code == 410


def test_a_link_ends_the_session_of_somebody_else(alice, bob_client):
    bob_client.get(sign_in_path(alice))
    assert bob_client.get("/w/acme/audit/").status_code == 200


def test_the_page_of_an_error_of_ours_names_its_number(alice_client, monkeypatch):
    monkeypatch.setattr("workspaces.views.settings.audit_of", None)
    alice_client.raise_request_exception = False
    answer = alice_client.get("/w/acme/audit/")
    assert answer.status_code == 500
    assert "tell your administrator this number: <code>" in answer.content.decode()
