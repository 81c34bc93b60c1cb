"""Who may speak to a workspace's endpoint: tokens, hosts, origins, methods and sizes."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from urllib.parse import urlsplit

import httpx2
import pytest

from connectors.endpoint import stored
from tests.connectors.outside import Outside, install, token_for
from workspaces.actions import create_token, revoke_token
from workspaces.models import ApiToken, Membership, User, Workspace


def outcome(response):
    """What a stranger can tell two refusals apart by, but for the name that was asked for."""
    challenge = response.headers.get("www-authenticate", "")
    return response.status_code, response.text, challenge.replace("acme", "*").replace("nope", "*")


@pytest.mark.requirement("F-150")
def test_a_strangers_valid_token_gets_what_a_missing_workspace_gives(site, acme, other, carol):
    token = token_for(other, carol)

    assert Outside(site, "other", token).post().status_code == 200
    theirs = outcome(Outside(site, "acme", token).post())
    assert theirs[0] == 401
    assert theirs == outcome(Outside(site, "nope", token).post())


def test_a_request_without_a_token_learns_where_the_metadata_is(site, acme):
    response = Outside(site, "acme", "").post(authorization=None)

    assert response.status_code == 401
    challenge = response.headers["www-authenticate"]
    assert challenge.startswith("Bearer ") and "invalid_token" not in challenge
    address = challenge.partition('resource_metadata="')[2].rstrip('"')
    assert httpx2.get(address, trust_env=False).json() == {
        "resource": f"{site}/mcp/acme",
        "bearer_methods_supported": ["header"],
    }


def test_the_metadata_is_the_same_for_a_workspace_that_does_not_exist(site, acme):
    def about(slug):
        address = f"{site}/.well-known/oauth-protected-resource/mcp/{slug}"
        return httpx2.get(address, trust_env=False).text.replace(slug, "*")

    assert about("acme") == about("nope")


@pytest.mark.parametrize("token", ["nb_", "nb_unknown", "ü", "a b", "x" * 5000])
def test_a_token_that_is_none_is_refused(site, acme, token):
    sent = f"Bearer {token}".encode("latin-1").decode("latin-1")
    response = Outside(site, "acme", "").post(authorization=sent.encode("latin-1"))

    assert response.status_code == 401


def test_a_token_ends_with_its_date_its_revocation_its_person_and_the_membership(site, acme, bob):
    now = datetime.now(UTC)
    expired = token_for(acme, bob, expires_at=now - timedelta(seconds=1))
    revoked, revoked_text = create_token(acme, bob, "revoked")
    kept = token_for(acme, bob, expires_at=now + timedelta(days=1))

    assert Outside(site, "acme", expired).post().status_code == 401
    assert Outside(site, "acme", revoked_text).post().status_code == 200
    revoke_token(revoked, by=bob)
    assert Outside(site, "acme", revoked_text).post().status_code == 401

    agent = Outside(site, "acme", kept)
    assert agent.post().status_code == 200
    User.objects.filter(pk=bob.pk).update(is_active=False)
    assert agent.post().status_code == 401
    User.objects.filter(pk=bob.pk).update(is_active=True)
    Membership.objects.filter(user=bob).delete()
    assert agent.post().status_code == 401


def test_a_token_revoked_in_the_midst_of_a_conversation_ends_it(agent, acme):
    async def converse(client):
        await client.list_tools()
        ApiToken.objects.update(revoked_at=datetime.now(UTC))
        with pytest.raises(Exception, match=r"."):
            await client.list_tools()

    agent.talk(converse)


def test_use_is_noted_at_most_once_a_minute_and_keeps_listings_young(agent, acme, queued):
    crm = install(acme, "crm")

    agent.post()
    first = ApiToken.objects.get().last_used_at
    assert first is not None and Workspace.objects.get(pk=acme.pk).endpoint_used_at == first
    assert queued == [("list_connectors", [crm.pk])]

    agent.post()
    assert ApiToken.objects.get().last_used_at == first
    assert len(queued) == 1

    ago = first - timedelta(minutes=2)
    ApiToken.objects.update(last_used_at=ago)
    Workspace.objects.update(endpoint_used_at=ago)
    stored.forget()  # As the seconds do that a catalogue is used again.
    agent.post()
    assert ApiToken.objects.get().last_used_at > first
    assert len(queued) == 2


@pytest.mark.parametrize("verb", ["GET", "DELETE", "PUT", "HEAD"])
def test_only_post_is_answered(agent, verb):
    response = httpx2.request(
        verb,
        agent.url,
        headers={"authorization": f"Bearer {agent.token}", "accept": "text/event-stream"},
        trust_env=False,
    )

    assert (response.status_code, response.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": ""}, 421),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://[broken"}, 403),
        ({"origin": "http://localhost:3000"}, 200),
    ],
)
def test_a_foreign_host_or_origin_is_refused(agent, headers, status):
    assert agent.post(**headers).status_code == status


def test_white_space_around_a_headers_value_is_no_part_of_it(agent):
    connection = HTTPConnection(urlsplit(agent.url).netloc, timeout=10)
    headers = {
        "authorization": f"Bearer {agent.token} ",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": " 2025-11-25 \t",
    }
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})

    connection.request("POST", urlsplit(agent.url).path, body, headers)
    assert connection.getresponse().status == 200
    connection.close()


def test_a_proxys_word_counts_only_where_it_is_trusted(agent, settings):
    forwarded = {"x_forwarded_host": "evil.example"}
    assert agent.post(**forwarded).status_code == 200

    settings.TRUST_PROXY_HEADERS = True
    settings.ALLOWED_HOSTS = ["mcp.example"]
    assert agent.post(**forwarded).status_code == 421
    response = agent.post(
        authorization=None, x_forwarded_host="mcp.example", x_forwarded_proto="https"
    )
    assert "https://mcp.example/.well-known/" in response.headers["www-authenticate"]


@pytest.mark.requirement("D13")
def test_a_body_that_is_too_large_is_refused_before_it_is_read(agent):
    assert agent.post(body=b'{"a": "' + b"x" * 10_000_000 + b'"}').status_code == 413


BROKEN = [b"", b"{", b"[]", b"null", b'"x"', b"[" * 100_000, b"\xff\xfe", b'{"jsonrpc": "2.0"}']


@pytest.mark.parametrize("version", ["2025-11-25", "2025-03-26", "2026-07-28", "1999-01-01", None])
def test_a_broken_body_is_refused_without_a_traceback(agent, version):
    for body in BROKEN:
        response = agent.post(body=body, mcp_protocol_version=version)

        assert response.status_code in (202, 400), body
        assert "Traceback" not in response.text


def test_the_site_itself_still_answers_beside_the_endpoint(site):
    response = httpx2.get(f"{site}/sign-in/", trust_env=False)

    assert response.status_code == 200
