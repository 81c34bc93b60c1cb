"""What becomes of a sign-in when its connector changes, and where its secrets are."""

from __future__ import annotations

import logging
import re

import pytest
from cryptography.fernet import Fernet
from django.apps import apps
from django.db import connection

from connectors.actions import rotate_secrets
from connectors.models import Connector, OAuthGrant, PendingSignIn
from connectors.runtime import close_runtime
from connectors.status import Status
from overview.logs import without_links
from tests.connectors.records import sheet
from tests.connectors.signing_in import (
    aged,
    departure,
    grant_of,
    look,
    messages_in,
    query_of,
    read,
    sign_in,
    signed_in,
    status,
    wanting,
)
from tests.servers.authorization import answer, sent_back

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def connector(acme, alice_client, server):
    return signed_in(acme, alice_client, server)


def press(client, act, data=None):
    return client.post(f"/w/acme/connectors/mail/{act}/", data or {})


def test_disconnect_keeps_the_tokens_and_connect_uses_them(connector, alice_client, server):
    press(alice_client, "disconnect")
    assert status(connector) is Status.AT_REST
    assert grant_of(connector) is not None
    press(alice_client, "connect")
    assert status(look(connector)) is Status.READY
    assert len(server.asked("/authorize")) == 1


def test_removing_the_connector_deletes_the_tokens(connector, alice_client):
    departure(alice_client)
    page = alice_client.get("/w/acme/connectors/mail/remove/").content.decode()
    assert "1 credential" in page
    press(alice_client, "remove", {"typed": "Mail"})
    assert not Connector.objects.exists()
    assert not OAuthGrant.objects.exists()
    assert not PendingSignIn.objects.exists()


def test_another_address_deletes_the_tokens(connector, alice_client, server):
    moved = sheet(name="Mail", url=f"{server.url}/other")
    assert press(alice_client, "configure", moved).status_code == 302
    assert grant_of(connector) is None
    assert status(look(connector)) is not Status.READY


def test_another_part_of_the_address_deletes_the_tokens(connector, alice_client, server):
    Connector.objects.update(url=f"{server.url}?tenant={{tenant}}")
    entered = sheet(name="Mail", url=f"{server.url}?tenant={{tenant}}")
    filled = entered | {"secret-variable-tenant": "another"}
    assert press(alice_client, "configure", filled).status_code == 302
    assert grant_of(connector) is None


def test_another_name_keeps_the_tokens(connector, alice_client, server):
    assert press(alice_client, "configure", sheet(name="Post", url=server.url)).status_code == 302
    assert status(look(connector)) is Status.READY


def test_a_token_typed_by_hand_takes_the_place_of_the_sign_in(connector, alice_client, server):
    typed = sheet(name="Mail", url=server.url) | {"secret-bearer-token": "typed-by-hand"}
    assert press(alice_client, "configure", typed).status_code == 302
    assert grant_of(connector) is None
    server.requests.clear()
    look(connector)
    assert {each.headers["authorization"] for each in server.asked("/mcp")} == {
        "Bearer typed-by-hand"
    }


@pytest.mark.requirement("S-011")
def test_disconnected_and_its_oauth_client_removed_is_at_rest(acme, alice_client, server):
    server.changes["/.well-known/oauth-authorization-server"] = {"registration_endpoint": None}
    connector = wanting(acme, server)
    press(alice_client, "sign-in")
    assert status(connector) is Status.CONFIGURATION_REQUIRED
    press(alice_client, "disconnect")
    assert status(connector) is Status.AT_REST


def test_signing_in_again_replaces_the_grant(connector, alice_client, server):
    before = grant_of(connector).access_token
    sign_in(alice_client)
    assert OAuthGrant.objects.get().access_token != before
    assert status(look(connector)) is Status.READY


def test_new_keys_reach_what_signing_in_gave(connector, alice_client, settings, server):
    departure(alice_client)
    old = settings.SECRETS_KEYS
    new = Fernet.generate_key().decode()
    settings.SECRETS_KEYS = [new, *old]
    assert rotate_secrets() == (2, [])
    settings.SECRETS_KEYS = [new]
    close_runtime()
    assert look(connector).connection == "ready"


def test_a_sign_in_heals_tokens_that_no_key_can_read(connector, alice_client, settings):
    settings.SECRETS_KEYS = [Fernet.generate_key().decode()]
    close_runtime()
    connector = look(connector)
    assert status(connector) is Status.FAILED
    assert "cannot be decrypted" in connector.failure
    sign_in(alice_client)
    assert status(look(connector)) is Status.READY


def test_a_secret_that_no_key_can_read_is_said_when_signing_in(
    acme, alice_client, server, settings
):
    wanting(acme, server, secrets=[("header", "x-tenant", "one")])
    settings.SECRETS_KEYS = [Fernet.generate_key().decode()]
    page = alice_client.get(press(alice_client, "sign-in").url)
    assert "cannot be decrypted" in messages_in(page)[0]


def stored_text():
    """Everything in the database, as it is at rest."""
    with connection.cursor() as cursor:
        found = []
        for model in apps.get_models():
            cursor.execute(f'SELECT * FROM "{model._meta.db_table}"')
            for row in cursor.fetchall():
                found += [
                    bytes(value).decode("latin-1")
                    if isinstance(value, bytes | memoryview)
                    else str(value)
                    for value in row
                ]
    return "\n".join(found)


def secrets_of(server):
    """All that only the two servers and this host may know."""
    forms = [each.form for each in server.requests]
    names = ("code", "code_verifier", "refresh_token", "client_secret")
    found = {form[name] for form in forms for name in names if name in form}
    found |= {client.client_secret for client in server.clients.values() if client.client_secret}
    return found | set(server.access_tokens) | set(server.refresh_tokens)


def test_secrets_are_in_no_table_no_log_and_no_page(acme, alice_client, server, caplog):
    caplog.set_level(logging.DEBUG)
    connector = signed_in(acme, alice_client, server)
    aged(connector)
    assert "contents" in read(connector)
    state = query_of(url := departure(alice_client))["state"]
    seen = [stored_text()]
    back = sent_back(url)
    # A server that says back what it was told.
    said = " ".join(secrets_of(server))
    server.answers["/token"] = answer(400, {"error": "invalid_grant"})
    seen.append(alice_client.get(back, follow=True).content.decode())
    server.answers["/mcp"] = answer(500, {"error": {"code": 1, "message": said}, "id": None})
    look(connector)
    seen += [stored_text(), alice_client.get("/w/acme/connectors/mail/").content.decode()]
    seen += [
        without_links(None, "", {"event": each.getMessage()})["event"] for each in _ours(caplog)
    ]
    secrets = secrets_of(server) | {state}
    assert len(secrets) > 8
    for text in seen:
        assert [each for each in secrets if each in text] == []


def _ours(caplog):
    """What this host logs; the peers run in the same process."""
    peers = re.compile(r"mcp\.|uvicorn|httpx2?|httpcore2?|asyncio|sse_starlette|starlette")
    return [record for record in caplog.records if not peers.match(record.name)]
