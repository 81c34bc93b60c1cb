"""Signing in, over two requests, to real servers."""

from __future__ import annotations

import json

import pytest

from connectors.models import OAuthGrant, PendingSignIn
from connectors.status import Status
from tests.connectors.records import added, asked
from tests.connectors.signing_in import (
    departure,
    look,
    messages_in,
    query_of,
    read,
    sign_in,
    signed_in,
    status,
    wanting,
)
from tests.servers.authorization import sent_back
from workspaces.models import AuditEntry

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.requirement("S-017")
def test_a_server_that_wants_a_sign_in_offers_the_button(acme, alice_client, bob_client, server):
    connector = wanting(acme, server)
    assert status(connector) is Status.RECONNECTION_NEEDED
    assert b"/sign-in/" in alice_client.get("/w/acme/connectors/mail/").content
    assert b"/connectors/mail/sign-in/" not in bob_client.get("/w/acme/connectors/mail/").content


@pytest.mark.requirement("S-016")
def test_signing_in_makes_the_connector_ready(acme, alice, alice_client, server):
    connector = wanting(acme, server)
    url = departure(alice_client)
    assert status(connector) is Status.CONNECTING
    page = alice_client.get(sent_back(url), follow=True)
    assert page.redirect_chain[-1] == ("/w/acme/connectors/mail/", 302)
    assert messages_in(page) == ["You are signed in to Mail."]
    assert status(connector) is Status.STARTING
    connector = look(connector)
    assert status(connector) is Status.READY
    assert json.loads(read(connector)["contents"][0]["text"]) == {"count": 3}
    line = AuditEntry.objects.get(action="signed in to connector")
    assert (line.user, line.subject) == (alice, "Mail")


def test_what_is_asked_for_is_complete(acme, alice_client, server):
    wanting(acme, server)
    query = query_of(departure(alice_client))
    assert query["resource"] == server.url
    assert query["scope"] == "read"
    assert (query["response_type"], query["code_challenge_method"]) == ("code", "S256")
    assert query["redirect_uri"] == "http://testserver/oauth/callback/"
    (registered,) = server.asked("/register")
    client = json.loads(registered.body)
    assert client["application_type"] == "web"
    assert client["redirect_uris"] == ["http://testserver/oauth/callback/"]
    sign_in(alice_client)
    (code,) = server.asked("/token")
    assert code.form["resource"] == server.url
    assert len(code.form["code_verifier"]) >= 43


def test_a_person_signs_in_for_a_connector_of_their_own(alice, alice_client, bob_client, server):
    connector = look(asked(added(None, "mail", owner=alice, url=server.url)))
    path = "/account/connectors/mail/sign-in/"
    assert bob_client.post(path).status_code == 404
    url = alice_client.post(path).headers["Refresh"].removeprefix("0; url=")
    back = sent_back(url)
    assert bob_client.get(back).status_code == 400
    page = alice_client.get(back, follow=True)
    assert page.redirect_chain[-1] == ("/account/connectors/", 302)
    assert messages_in(page) == ["You are signed in to Mail."]
    assert status(look(connector)) is Status.READY


def test_only_admins_sign_in(acme, alice, bob_client, carol_client, server):
    wanting(acme, server)
    assert bob_client.post("/w/acme/connectors/mail/sign-in/").status_code == 403
    assert carol_client.post("/w/acme/connectors/mail/sign-in/").status_code == 404
    assert not PendingSignIn.objects.exists()


def test_tokens_are_encrypted_at_rest(acme, alice_client, server):
    signed_in(acme, alice_client, server)
    (access,), (refresh,) = server.access_tokens, server.refresh_tokens
    grant = OAuthGrant.objects.get()
    assert (grant.access_token, grant.refresh_token) == (access, refresh)
