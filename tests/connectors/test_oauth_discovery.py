"""Where to sign in, and as whom: what servers may say of it, and what is not believed."""

from __future__ import annotations

import json

import pytest

from connectors.models import Connector, PendingSignIn, Secret
from connectors.status import Status
from tests.connectors.records import sheet
from tests.connectors.signing_in import (
    departure,
    grant_of,
    look,
    messages_in,
    press_sign_in,
    query_of,
    read,
    sign_in,
    status,
    wanting,
)
from tests.servers.authorization import (
    RESOURCE_METADATA,
    SERVER_METADATA,
    answer,
    authorization_server,
    sent_back,
)

pytestmark = pytest.mark.django_db(transaction=True)

HTTPS = "https://auth.example.com"


def refused(client, server):
    """Press the button in vain: nobody registers and nothing is under way. What the page says."""
    page = press_sign_in(client)
    assert page.status_code == 302
    assert not PendingSignIn.objects.exists()
    assert Connector.objects.get().sign_in_started_at is None
    assert not server.asked("/register")
    (words,) = messages_in(client.get(page.url))
    return words


@pytest.mark.parametrize(
    ("path", "changes", "words"),
    [
        (RESOURCE_METADATA, {"resource": "https://bank.example.com/mcp"}, "bank.example.com"),
        (RESOURCE_METADATA, {"authorization_servers": ["http://auth.example.com"]}, "over https"),
        (RESOURCE_METADATA, {"authorization_servers": ["https://169.254.169.254"]}, "may reach"),
        (RESOURCE_METADATA, {"authorization_servers": ["https://[::ffff:10.0.0.1]"]}, "may reach"),
        (RESOURCE_METADATA, {"authorization_servers": ["javascript:alert(1)"]}, "over https"),
        (SERVER_METADATA, {"issuer": HTTPS}, "belongs to https://auth.example.com"),
        (SERVER_METADATA, {"authorization_endpoint": "http://auth.example.com/a"}, "over https"),
        (SERVER_METADATA, {"authorization_endpoint": "javascript:alert(1)"}, "over https"),
        (SERVER_METADATA, {"token_endpoint": "http://auth.example.com/t"}, "over https"),
        (SERVER_METADATA, {"code_challenge_methods_supported": ["plain"]}, "PKCE with S256"),
        (SERVER_METADATA, {"code_challenge_methods_supported": None}, "PKCE with S256"),
    ],
)
def test_metadata_that_may_mislead_leads_nowhere(acme, alice_client, server, path, changes, words):
    wanting(acme, server)
    server.changes[path] = changes
    assert words in refused(alice_client, server)
    assert status(Connector.objects.get()) is Status.RECONNECTION_NEEDED


@pytest.mark.parametrize("path", [RESOURCE_METADATA, SERVER_METADATA])
@pytest.mark.parametrize("code", [429, 500, 503])
def test_an_outage_of_the_metadata_is_said_to_pass(acme, alice_client, server, path, code):
    wanting(acme, server)
    server.answers[path] = answer(code)
    assert "Try again later." in refused(alice_client, server)


@pytest.mark.parametrize("path", [RESOURCE_METADATA, SERVER_METADATA])
def test_metadata_without_end_is_not_read(acme, alice_client, server, path):
    wanting(acme, server)
    server.answers[path] = answer(200, {"pad": "x" * 1_000_000})
    assert "larger than 262,144 bytes" in refused(alice_client, server)


@pytest.mark.requirement("D11")
def test_a_401_without_a_challenge_is_found_by_the_well_known_address(acme, alice_client, server):
    server.answers["/mcp"] = answer(401)
    connector = wanting(acme, server)
    assert status(connector) is Status.RECONNECTION_NEEDED
    assert query_of(departure(alice_client))["resource"] == server.url


def test_a_server_that_names_no_sign_in_says_so(acme, alice_client, server):
    for path in (RESOURCE_METADATA, SERVER_METADATA):
        server.answers[path] = answer(404)
    server.answers["/mcp"] = answer(401)
    wanting(acme, server)
    assert "does not say where to sign in" in refused(alice_client, server)


def test_the_scope_of_the_challenge_goes_before_the_metadatas(acme, alice_client, server):
    challenge = f'Basic realm="x", Bearer resource_metadata="{server.base}{RESOURCE_METADATA}"'
    server.answers["/mcp"] = answer(401, None, www_authenticate=f'{challenge}, scope="write read"')
    wanting(acme, server)
    assert query_of(departure(alice_client))["scope"] == "write read"


def test_a_refresh_token_is_asked_for_where_that_takes_a_scope(acme, alice_client, server):
    server.changes[SERVER_METADATA] = {"scopes_supported": ["read", "offline_access"]}
    wanting(acme, server)
    query = query_of(departure(alice_client))
    assert (query["scope"], query["prompt"]) == ("read offline_access", "consent")


def test_the_resource_is_sent_byte_for_byte(acme, alice_client, server):
    identifier = f"{server.base}/mcp?%7e=%C3%A4#"[:-1]
    server.changes[RESOURCE_METADATA] = {"resource": identifier}
    wanting(acme, server)
    assert query_of(departure(alice_client))["resource"] == identifier


@pytest.mark.parametrize("status_code", [301, 302, 307, 308])
def test_no_redirect_of_the_authorization_server_is_followed(
    acme, alice_client, server, status_code
):
    wanting(acme, server)
    with authorization_server() as elsewhere:
        for path in (SERVER_METADATA, "/register"):
            server.answers = {path: answer(status_code, None, location=f"{elsewhere.base}{path}")}
            assert press_sign_in(alice_client).status_code == 302
        server.answers = {}
        url = departure(alice_client)
        location = f"{elsewhere.base}/token"
        server.answers = {"/token": answer(status_code, None, location=location)}
        page = alice_client.get(sent_back(url), follow=True)
        assert f"did not finish the sign-in (HTTP {status_code})" in messages_in(page)[0]
        assert elsewhere.requests == []


@pytest.mark.parametrize("assigned", ["none", None])
def test_a_secret_for_a_client_that_needs_none_is_left_alone(acme, alice_client, server, assigned):
    server.changes[SERVER_METADATA] = {"token_endpoint_auth_methods_supported": ["none"]}
    given = {"client_secret": "unasked", "token_endpoint_auth_method": assigned}
    server.changes["/register"] = given
    connector = wanting(acme, server)
    sign_in(alice_client)
    assert status(look(connector)) is Status.READY
    [token] = server.asked("/token")
    assert "client_secret" not in token.form and "authorization" not in token.headers


def test_a_document_describes_this_site_where_the_server_takes_one(
    acme, alice_client, client, settings, server
):
    settings.SITE_URL = "https://overview.example.com"
    settings.ALLOWED_HOSTS = ["*"]
    server.changes[SERVER_METADATA] = {"client_id_metadata_document_supported": True}
    document = client.get("/oauth/client-metadata.json")
    described = document.json()
    assert described["client_id"] == "https://overview.example.com/oauth/client-metadata.json"
    assert described["redirect_uris"] == ["https://overview.example.com/oauth/callback/"]
    assert described["token_endpoint_auth_method"] == "none"
    server.add_client(described["client_id"], described["redirect_uris"][0])
    connector = wanting(acme, server)
    sign_in(alice_client)
    assert status(look(connector)) is Status.READY
    assert not server.asked("/register")


def test_without_a_public_address_there_is_no_document(acme, alice_client, client, server):
    server.changes[SERVER_METADATA] = {"client_id_metadata_document_supported": True}
    wanting(acme, server)
    departure(alice_client)
    assert len(server.asked("/register")) == 1
    assert client.get("/oauth/client-metadata.json").status_code == 404


@pytest.mark.parametrize("slash", ["", "/"])
def test_an_operators_client_is_used_before_any_other(acme, alice_client, settings, server, slash):
    server.add_client("ours", "http://testserver/oauth/callback/", "client-secret/ä")
    settings.OAUTH_CLIENTS = {
        f"{server.base}{slash}": {"client_id": "ours", "client_secret": "client-secret/ä"}
    }
    connector = wanting(acme, server)
    sign_in(alice_client)
    assert status(look(connector)) is Status.READY
    (token,) = server.asked("/token")
    assert token.form["client_id"] == "ours"
    assert token.headers["authorization"].startswith("Basic ")
    assert "client_secret" not in token.form


def test_a_client_for_another_issuer_is_not_sent(acme, alice_client, settings, server):
    settings.OAUTH_CLIENTS = {HTTPS: {"client_id": "theirs", "client_secret": "planted"}}
    wanting(acme, server)
    assert query_of(departure(alice_client))["client_id"] != "theirs"


def test_a_client_that_nobody_gives_is_asked_of_the_admin(acme, alice_client, server):
    server.changes[SERVER_METADATA] = {"registration_endpoint": None}
    connector = wanting(acme, server)
    words = refused(alice_client, server)
    assert "http://testserver/oauth/callback/" in words
    assert "Configure" in words
    assert status(connector) is Status.CONFIGURATION_REQUIRED
    server.add_client("by-hand", "http://testserver/oauth/callback/", "its-secret")
    url = "/w/acme/connectors/mail/configure/"
    entered = {
        f"secret-client-client_id@{server.base}": "by-hand",
        f"secret-client-client_secret@{server.base}": "its-secret",
    }
    page = alice_client.post(url, sheet(name="Mail", url=server.url) | entered)
    assert page.status_code == 302, page.content
    assert Secret.objects.filter(kind="client").count() == 2
    look(connector)
    assert status(connector) is Status.RECONNECTION_NEEDED
    sign_in(alice_client)
    connector = look(connector)
    assert status(connector) is Status.READY
    assert json.loads(read(connector)["contents"][0]["text"]) == {"count": 3}
    assert grant_of(connector).issuer == server.base


def test_a_refused_registration_says_what_to_do(acme, alice_client, server):
    wanting(acme, server)
    body = {"error": "invalid_redirect_uri", "error_description": "Not from here."}
    server.answers["/register"] = answer(400, body)
    page = alice_client.get(press_sign_in(alice_client).url)
    (words,) = messages_in(page)
    assert "Not from here." in words
    assert "client ID" in words
