"""The way back from an authorization server: what is taken, from whom, and how often."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from connectors.models import Connector, OAuthGrant, PendingSignIn
from connectors.status import Status
from tests.connectors.signing_in import (
    departure,
    look,
    messages_in,
    sign_in,
    signed_in,
    status,
    wanting,
)
from tests.servers.authorization import answer, sent_back, with_query
from workspaces.models import Membership, Role

pytestmark = pytest.mark.django_db(transaction=True)

OVER = "This sign-in is over"


@pytest.fixture
def back(acme, alice_client, server):
    """The address that Alice's browser comes back with."""
    wanting(acme, server)
    return sent_back(departure(alice_client))


def is_over(response):
    """Nothing was taken: the page says so, and no code was spent."""
    return response.status_code == 400 and OVER in response.content.decode()


def test_a_state_works_once(alice_client, server, back):
    assert alice_client.get(back).status_code == 302
    assert is_over(alice_client.get(back))
    assert len(server.asked("/token")) == 1


@pytest.mark.parametrize("state", [None, "", "x" * 5000, "\ud800", "\x00"])
def test_a_state_that_nobody_gave_out_is_refused(alice_client, server, back, state):
    other = with_query(back, state=None if state is None else "made-up")
    if state is None:
        assert is_over(alice_client.get(other))
    else:
        data = {"code": "x", "state": state.encode("utf-8", "surrogatepass")}
        assert is_over(alice_client.get("/oauth/callback/", data))
    assert not server.asked("/token")
    assert alice_client.get(back).status_code == 302


def test_another_persons_state_is_refused_and_left_to_its_owner(
    acme, bob, bob_client, alice_client, server, back
):
    Membership.objects.filter(user=bob).update(role=Role.ADMIN)
    assert is_over(bob_client.get(back))
    assert not server.asked("/token")
    assert alice_client.get(back).status_code == 302


def test_somebody_signed_out_is_asked_to_sign_in_here_first(back, server):
    response = Client().get(back)
    assert response.status_code == 302
    assert response.headers["location"].startswith("/sign-in/")
    assert not server.asked("/token")


def test_somebody_who_is_no_admin_any_more_changes_nothing(alice, alice_client, server, back):
    Membership.objects.filter(user=alice).update(role=Role.MEMBER)
    assert alice_client.get(back).status_code == 403
    assert not server.asked("/token")


def test_a_state_is_too_old_after_ten_minutes(alice_client, server, back):
    old = timezone.now() - timedelta(minutes=10)
    PendingSignIn.objects.update(started_at=old)
    assert is_over(alice_client.get(back))
    assert not server.asked("/token")


@pytest.mark.parametrize("act", ["cancel", "disconnect", "sign-in"])
def test_what_happened_to_the_connector_meanwhile_goes_first(alice_client, server, back, act):
    alice_client.post(f"/w/acme/connectors/mail/{act}/")
    assert is_over(alice_client.get(back))
    assert not OAuthGrant.objects.exists()


def test_a_second_sign_in_of_one_person_replaces_the_first(alice_client, back):
    again = sent_back(departure(alice_client))
    assert is_over(alice_client.get(back))
    assert messages_in(alice_client.get(again, follow=True)) == ["You are signed in to Mail."]


def test_two_admins_do_not_end_each_others_sign_in(acme, bob, bob_client, alice_client, back):
    Membership.objects.filter(user=bob).update(role=Role.ADMIN)
    departure(bob_client)
    assert messages_in(alice_client.get(back, follow=True)) == ["You are signed in to Mail."]


@pytest.mark.parametrize("iss", ["https://evil.example.com", "", None])
def test_an_answer_of_another_server_is_not_used(acme, alice_client, server, iss):
    server.changes["/.well-known/oauth-authorization-server"] = {
        "authorization_response_iss_parameter_supported": True
    }
    server.names_itself = True
    wanting(acme, server)
    back = with_query(sent_back(departure(alice_client)), iss=iss)
    (words,) = messages_in(alice_client.get(back, follow=True))
    assert "may be an attack" in words
    assert not server.asked("/token")
    assert status(Connector.objects.get()) is Status.RECONNECTION_NEEDED


def test_a_wrong_issuer_is_noticed_where_none_was_promised(acme, alice_client, server):
    server.wrong_issuer = "https://evil.example.com"
    wanting(acme, server)
    (words,) = messages_in(sign_in(alice_client))
    assert "may be an attack" in words
    assert not server.asked("/token")


def test_the_right_issuer_is_taken(acme, alice_client, server):
    server.names_itself = True
    connector = signed_in(acme, alice_client, server)
    assert status(connector) is Status.READY


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"error": "access_denied"}, "gave no access"),
        ({"error": "temporarily_unavailable"}, "Sign in again later."),
        ({"error": "server_error", "error_description": "<b>oops</b>"}, "Sign in again later."),
        ({"error": "invalid_scope", "error_description": "No write."}, "(No write.)"),
        ({"error": "unauthorized_client"}, "refused the sign-in (unauthorized_client)"),
        ({"error": "x" * 9000, "error_description": "\u202ey\n" * 99}, "refused the sign-in"),
    ],
)
def test_a_refusal_is_said_in_words_that_help(acme, alice_client, server, said, words):
    server.declines = said
    connector = wanting(acme, server)
    page = sign_in(alice_client)
    (message,) = messages_in(page)
    assert words in message
    assert len(message) < 400
    assert b"<b>oops</b>" not in page.content
    assert status(connector) is Status.RECONNECTION_NEEDED
    server.declines = {}
    assert messages_in(sign_in(alice_client)) == ["You are signed in to Mail."]


def test_coming_back_without_an_answer_is_said(alice_client, server, back):
    page = alice_client.get(with_query(back, code=None), follow=True)
    assert "without an answer" in messages_in(page)[0]
    assert not server.asked("/token")


@pytest.mark.parametrize(
    ("response", "words"),
    [
        (answer(503), "HTTP 503"),
        (answer(400, {"error": "invalid_grant", "error_description": "Too late."}), "Too late."),
        (answer(200, {"access_token": "x"}, content_type="text/html"), None),
        (answer(200, {"access_token": "x y", "token_type": "bearer"}), "HTTP 200"),
        (answer(200, {"access_token": "x", "token_type": "mac"}), "HTTP 200"),
        (answer(200, ["access_token"]), "HTTP 200"),
        (answer(200, {"access_token": "x", "pad": "y" * 300_000}), "could not be reached"),
    ],
)
def test_a_code_that_cannot_be_traded_is_said(alice_client, server, back, response, words):
    server.answers["/token"] = response
    (message,) = messages_in(alice_client.get(back, follow=True))
    assert (words or "signed in") in message
    is_stored = OAuthGrant.objects.exists()
    assert is_stored is (words is None)


@pytest.mark.requirement("S-004")
def test_a_sign_in_that_nobody_finished_puts_it_back_at_rest(acme, back):
    connector = Connector.objects.get()
    assert status(connector) is Status.CONNECTING
    Connector.objects.update(sign_in_started_at=timezone.now() - timedelta(minutes=16))
    assert status(connector) is Status.AT_REST


@pytest.mark.requirement("S-005")
def test_an_abandoned_sign_in_of_one_that_worked_leaves_it_waiting(acme, alice_client, server):
    connector = signed_in(acme, alice_client, server)
    server.refuses_all = True
    look(connector)
    assert status(connector) is Status.RECONNECTION_NEEDED
    departure(alice_client)
    assert status(connector) is Status.CONNECTING
    Connector.objects.update(sign_in_started_at=timezone.now() - timedelta(minutes=16))
    assert status(connector) is Status.RECONNECTION_NEEDED


def test_declining_more_access_leaves_a_working_connector_alone(acme, alice_client, server):
    connector = signed_in(acme, alice_client, server)
    server.declines = {"error": "access_denied"}
    sign_in(alice_client)
    assert status(connector) is Status.READY
    assert OAuthGrant.objects.filter(connector=connector).exists()
