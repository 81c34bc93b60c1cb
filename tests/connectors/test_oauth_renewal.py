"""Tokens that run out, are replaced or refused: with real servers and real processes."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from datetime import timedelta

import pytest
from django.utils import timezone

from connectors.models import Connector, OAuthGrant
from connectors.oauth import grants
from connectors.oauth.tokens import Tokens
from connectors.runtime import close_runtime, run
from connectors.sessions import Fault, FaultKind
from connectors.status import Status
from tests.connectors.reading_process import begin, outcome_of, reading_process
from tests.connectors.signing_in import (
    aged,
    grant_of,
    look,
    read,
    sign_in,
    signed_in,
    status,
    target,
)
from tests.servers.authorization import answer

pytestmark = pytest.mark.django_db(transaction=True)

WAIT_SECONDS = 10


@pytest.fixture
def connector(acme, alice_client, server):
    """Signed in to and ready."""
    return signed_in(acme, alice_client, server)


def text_of(outcome):
    assert not isinstance(outcome, Fault), outcome
    return json.loads(outcome["contents"][0]["text"])


def renewals(server):
    return server.asked("/token", grant_type="refresh_token")


def refuse_current(server):
    """The server no longer takes the tokens that it has given out so far."""
    server.refused_tokens |= set(server.access_tokens)


def wait_until(condition):
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.requirement("D10")
def test_two_processes_that_meet_an_expired_token_renew_it_once(connector, server):
    aged(connector)
    with reading_process(connector) as one, reading_process(connector) as other:
        begin(one)
        begin(other)
        assert [json.loads(outcome_of(each)) for each in (one, other)] == [{"count": 3}] * 2
    assert len(renewals(server)) == 1
    (newest,) = server.refresh_tokens
    assert grant_of(connector).refresh_token == newest
    assert status(look(connector)) is Status.READY


@pytest.mark.requirement("D10")
def test_two_processes_whose_token_is_refused_renew_it_once(connector, server):
    refuse_current(server)
    with reading_process(connector) as one, reading_process(connector) as other:
        begin(one)
        begin(other)
        assert [json.loads(outcome_of(each)) for each in (one, other)] == [{"count": 3}] * 2
    assert len(renewals(server)) == 1
    assert status(connector) is Status.READY


def killed_while_renewing(connector, server):
    """A process is killed when the server has replaced the tokens and has not yet said so."""
    before = set(server.refresh_tokens)
    server.holds_refresh = threading.Event()
    aged(connector)
    with reading_process(connector) as process:
        begin(process)
        wait_until(lambda: renewals(server) and set(server.refresh_tokens) != before)
        process.kill()
        process.wait()
    server.holds_refresh.set()
    server.holds_refresh = None
    grant = grant_of(connector)
    assert grant.lease_until > timezone.now()
    # Nobody waits for a dead process longer than its lease.
    OAuthGrant.objects.update(lease_until=timezone.now())


@pytest.mark.requirement("D10")
def test_a_process_killed_before_it_stored_the_answer_costs_one_sign_in(
    connector, alice_client, server
):
    killed_while_renewing(connector, server)
    outcome = read(connector)
    assert outcome.kind is FaultKind.UNAUTHORIZED
    assert "may have replaced the key while this host stopped" in outcome.message
    assert status(connector) is Status.RECONNECTION_NEEDED
    page = alice_client.get("/w/acme/connectors/mail/").content.decode()
    assert "may have replaced the key while this host stopped" in page
    sign_in(alice_client)
    assert status(look(connector)) is Status.READY


@pytest.mark.requirement("D10")
def test_a_killed_process_costs_nothing_where_the_server_takes_a_token_twice(connector, server):
    server.rotates = False
    killed_while_renewing(connector, server)
    assert text_of(read(connector)) == {"count": 3}
    assert grant_of(connector).sent_at is None


@pytest.mark.requirement("D10")
def test_an_answer_that_comes_after_the_lease_is_stored_all_the_same(connector):
    now = timezone.now()
    held = grants.held_by(Connector.objects.get())
    assert held is not None
    assert grants.claim(held, "slow", now)
    assert not grants.claim(held, "quick", now)
    assert grants.claim(held, "quick", now + timedelta(seconds=grants.LEASE_SECONDS + 1))
    grants.keep(held, Tokens("new-access", "new-refresh", None, None), now)
    # The server refuses the second use, which is no news about what has taken its place.
    grants.refuse(held, "Sign in again.", now)
    assert grant_of(connector).access_token == "new-access"
    assert status(connector) is Status.READY


def test_many_reads_of_one_process_renew_once_and_need_no_new_connection(connector, server):
    handshakes = len([each for each in server.requests if b"server/discover" in each.body])
    refuse_current(server)
    aim = target(connector)

    async def all_at_once(sessions):
        reads = [sessions.read_resource(aim, "acme://drafts", 10) for _ in range(10)]
        return await asyncio.gather(*reads)

    assert [text_of(each) for each in run(all_at_once, 20)] == [{"count": 3}] * 10
    assert len(renewals(server)) == 1
    again = len([each for each in server.requests if b"server/discover" in each.body])
    assert again == handshakes


def test_a_caller_who_gives_up_does_not_lose_the_new_tokens(connector, server):
    server.holds_refresh = threading.Event()
    aged(connector)
    outcome = read(connector, seconds=0.5)
    assert outcome.kind is FaultKind.TIMEOUT
    server.holds_refresh.set()
    wait_until(lambda: grant_of(connector).generation == 2)
    assert text_of(read(connector)) == {"count": 3}
    assert len(renewals(server)) == 1


def test_tokens_are_renewed_before_they_run_out(connector, server):
    aged(connector, left=29)
    assert text_of(read(connector)) == {"count": 3}
    assert len(renewals(server)) == 1


def test_short_lived_tokens_are_used_before_they_are_renewed(acme, alice_client, server):
    server.access_seconds = 20
    connector = signed_in(acme, alice_client, server)
    for _ in range(5):
        assert text_of(read(connector)) == {"count": 3}
    assert not renewals(server)


@pytest.mark.requirement("D11")
def test_a_token_refused_once_is_renewed_and_the_call_made_again(connector, server):
    refuse_current(server)
    aim = target(connector)
    outcome = run(
        lambda sessions: sessions.call_tool(aim, "send_draft", {}, timeout=10, is_repeatable=False),
        20,
    )
    assert outcome["content"][0]["text"] == "sent"
    assert len(renewals(server)) == 1
    assert status(look(connector)) is Status.READY


@pytest.mark.requirement("D11")
def test_a_401_right_after_a_good_renewal_needs_a_person(connector, server):
    server.refuses_all = True
    outcome = read(connector)
    assert outcome.kind is FaultKind.UNAUTHORIZED
    assert len(renewals(server)) == 1
    assert status(connector) is Status.RECONNECTION_NEEDED
    look(connector)
    assert len(renewals(server)) == 1


@pytest.mark.requirement("D11")
@pytest.mark.parametrize(
    "body",
    [{"error": "invalid_grant"}, {"error": "invalid_client"}, {"error": "bad_refresh_token"}],
)
@pytest.mark.parametrize("code", [200, 400, 401])
def test_a_refused_renewal_needs_a_person(connector, server, alice_client, body, code):
    server.answers["/token"] = answer(code, body)
    aged(connector)
    connector = look(connector)
    assert status(connector) is Status.RECONNECTION_NEEDED
    assert connector.credential_refused_at is not None
    assert "ended the sign-in. Sign in again." in connector.failure
    assert grant_of(connector) is None
    server.answers.clear()
    sign_in(alice_client)
    assert status(look(connector)) is Status.READY


@pytest.mark.requirement("D11")
@pytest.mark.parametrize(
    "response",
    [
        answer(503, None, retry_after="60"),
        answer(429, {"error": "slow_down"}),
        answer(500, {"error": "server_error"}),
        answer(400, {"error": "invalid_request"}),
        answer(403, "<html>"),
        answer(200, {"hello": "world"}),
        answer(302, None, location="http://127.0.0.1:9/token"),
    ],
)
def test_whatever_else_a_token_endpoint_answers_keeps_the_tokens(connector, server, response):
    before = grant_of(connector).refresh_token
    server.answers["/token"] = response
    aged(connector)
    connector = look(connector)
    assert status(connector) is Status.FAILED
    assert "cannot be renewed now" in connector.failure
    assert f"HTTP {response.status_code}" in connector.failure
    assert connector.check_due_at is not None
    # Not once per request.
    assert len(renewals(server)) == 1
    assert grant_of(connector).refresh_token == before
    server.answers.clear()
    close_runtime()  # As when the pause between two tries is over.
    assert status(look(connector)) is Status.READY


@pytest.mark.requirement("D11")
def test_tokens_that_still_hold_are_used_while_they_cannot_be_renewed(connector, server):
    server.answers["/token"] = answer(503)
    aged(connector, left=20)
    assert text_of(read(connector)) == {"count": 3}
    assert status(look(connector)) is Status.READY


@pytest.mark.requirement("D11")
def test_a_401_only_to_get_means_nothing(acme, alice_client, server):
    server.answers["GET /mcp"] = answer(401)
    connector = signed_in(acme, alice_client, server)
    assert text_of(read(connector)) == {"count": 3}
    assert status(look(connector)) is Status.READY
    assert not renewals(server)


def test_without_a_refresh_token_a_401_needs_a_person(acme, alice_client, server):
    server.gives_refresh_tokens = False
    connector = signed_in(acme, alice_client, server)
    refuse_current(server)
    assert read(connector).kind is FaultKind.UNAUTHORIZED
    assert status(connector) is Status.RECONNECTION_NEEDED


LACKING = 'Bearer error="insufficient_scope", scope="write"'


@pytest.mark.requirement("D11")
def test_a_missing_scope_is_named_and_the_next_sign_in_asks_for_it(connector, alice_client, server):
    server.answers["/mcp"] = answer(403, None, www_authenticate=LACKING)
    outcome = read(connector)
    assert (outcome.kind, "lacks: write (HTTP 403)" in outcome.message) == (
        FaultKind.FORBIDDEN,
        True,
    )
    server.answers.clear()
    assert status(look(connector)) is Status.READY
    assert not renewals(server)
    page = alice_client.get("/w/acme/connectors/mail/").content.decode()
    assert "wants a permission that the sign-in does not have" in page
    sign_in(alice_client)
    assert server.asked("/authorize")[-1].form["scope"] == "read write"
    assert grant_of(connector).scope == "read write"
    page = alice_client.get("/w/acme/connectors/mail/").content.decode()
    assert "wants a permission" not in page


@pytest.mark.requirement("D11")
def test_a_check_that_lacks_a_scope_is_a_failure_that_names_it(connector, server):
    server.answers["/mcp"] = answer(403, None, www_authenticate=LACKING)
    connector = look(connector)
    assert status(connector) is Status.FAILED
    assert "write" in connector.failure
    assert connector.check_due_at is not None


def test_a_refused_credential_is_not_tried_again(connector, server):
    from connectors.actions import check_soon
    from connectors.check_leases import claim_checks

    server.refuses_all = True
    read(connector)
    check_soon(connector.pk)
    assert not claim_checks([connector.pk], timezone.now() + timedelta(hours=1))
