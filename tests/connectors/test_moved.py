"""D12 on a connector's page: servers that answer that they are somewhere else."""

from __future__ import annotations

import html

import pytest

from connectors.models import OAuthGrant
from connectors.runtime import close_runtime
from connectors.sessions import Fault
from connectors.status import Status
from tests.connectors.records import MARKER, added, asked
from tests.connectors.signing_in import look, read, sign_in, status
from tests.servers.raw import Reply, raw_server

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.requirement("D12")]

PAGE = "/w/acme/connectors/mail/"


@pytest.fixture(autouse=True)
def _no_sessions_left(queued):
    yield
    close_runtime()


@pytest.fixture
def sent_to(acme):
    """Check a connector whose server redirects; it, and what the server saw."""
    with raw_server() as server:
        server.on("resources/read", {"contents": []})

        def looked(code, location):
            reply = Reply(code, {"location": location})
            server.intercept = lambda request: reply if request.path == "/mcp" else None
            made = added(acme, secrets=[("bearer", "token", MARKER)], url=server.url)
            return look(asked(made)), server

        yield looked
        close_runtime()


def page_of(client):
    return html.unescape(client.get(PAGE).content.decode())


def test_to_another_path_of_its_own_it_is_followed_with_everything(sent_to, alice_client):
    connector, server = sent_to(307, "/mcp/")
    assert status(connector) is Status.READY
    assert not isinstance(read(connector), Fault)
    first, second = server.seen("resources/read")
    assert (first.path, second.path) == ("/mcp", "/mcp/")
    assert first.message == second.message
    assert second.headers["authorization"] == f"Bearer {MARKER}"


def test_to_https_of_the_same_host_it_is_not_and_the_page_says_what_to_correct(
    sent_to, alice_client
):
    connector, server = sent_to(301, "https://127.0.0.1/mcp")
    assert status(connector) is Status.CONFIGURATION_REQUIRED
    page = page_of(alice_client)
    assert "The server redirects to https://127.0.0.1, which is not followed." in page
    assert "correct the connector's address" in page
    assert f'action="{PAGE}configure/"' in page or f'href="{PAGE}configure/"' in page
    assert {each.method for each in server.requests} == {"server/discover"}


def test_to_another_origin_no_credential_goes_and_the_page_names_it(sent_to, alice_client):
    with raw_server() as other:
        connector, _ = sent_to(307, other.url)
        assert status(connector) is Status.CONFIGURATION_REQUIRED
        assert other.connections == 0
    assert f"127.0.0.1:{other.port}" in page_of(alice_client)
    assert "Configuration required" in alice_client.get("/w/acme/").content.decode()


@pytest.mark.parametrize("location", ["http://169.254.169.254/latest", "http://10.0.0.1/mcp"])
def test_to_an_inner_address_it_is_blocked_before_connecting(sent_to, alice_client, location):
    connector, _ = sent_to(307, location)
    assert status(connector) is Status.FAILED
    assert "an address that connectors may not reach" in page_of(alice_client)


def test_a_real_framework_redirects_and_a_sign_in_goes_all_the_way(acme, alice_client, server):
    """Starlette sends /mcp/ to /mcp with 307: discovery, the sign-in and calls go through it."""
    connector = look(asked(added(acme, "mail", url=f"{server.base}/mcp/")))
    assert status(connector) is Status.RECONNECTION_NEEDED
    sign_in(alice_client)
    assert status(look(connector)) is Status.READY
    outcome = read(connector)
    assert not isinstance(outcome, Fault), outcome
    assert OAuthGrant.objects.get().resource == server.url
    sent = [each.headers.get("authorization") for each in server.asked("/mcp/")]
    assert sent[-1] == f"Bearer {OAuthGrant.objects.get().access_token}"
