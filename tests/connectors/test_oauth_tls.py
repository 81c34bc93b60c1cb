"""Signing in where every certificate is from an authority of the company's own."""

from __future__ import annotations

import pytest

from connectors.actions import configure_connector
from connectors.models import Connector
from connectors.runtime import close_runtime
from connectors.sessions import Fault
from connectors.status import Status
from tests.connectors.signing_in import (
    aged,
    departure,
    grant_of,
    look,
    press_sign_in,
    read,
    said,
    status,
    wanting,
)
from tests.servers.authorization import authorization_server, sent_back
from tests.servers.certificates import Authority

pytestmark = pytest.mark.django_db(transaction=True)

INVALID = "certificate is not valid"


@pytest.fixture(scope="module")
def authority():
    return Authority()


@pytest.fixture
def server(authority, tmp_path, transactional_db, queued):
    """As the fixture of all other tests, over TLS."""
    with authorization_server(tls=authority.context_for(tmp_path)) as running:
        yield running
        close_runtime()


@pytest.fixture
def connector(acme, server, authority):
    return wanting(acme, server, ca_bundle=authority.bundle)


def with_bundle(connector, bundle):
    """As an admin who saves another bundle."""
    changed = Connector.objects.get(pk=connector.pk)
    changed.ca_bundle = bundle
    configure_connector(changed, [], [], by=None)
    return changed


def sign_in(client, authority):
    return client.get(sent_back(departure(client), authority.bundle), follow=True)


def test_with_its_bundle_all_of_a_sign_in_works(connector, alice_client, server, authority):
    """Discovery, registration, the trade of the code, and each renewal are requests over TLS."""
    assert status(connector) is Status.RECONNECTION_NEEDED
    sign_in(alice_client, authority)
    assert status(look(connector)) is Status.READY
    first = grant_of(connector).access_token
    aged(connector)
    outcome = read(connector)
    assert not isinstance(outcome, Fault), outcome
    assert grant_of(connector).access_token != first
    assert server.asked("/.well-known/oauth-authorization-server")
    assert len(server.asked("/register")) == 1
    assert len(server.asked("/token", grant_type="authorization_code")) == 1
    assert len(server.asked("/token", grant_type="refresh_token")) == 1
    assert status(look(connector)) is Status.READY


def test_without_it_nothing_is_asked_and_the_words_say_why(acme, alice_client, server):
    connector = wanting(acme, server)
    assert status(connector) is Status.FAILED
    assert INVALID in connector.failure
    press_sign_in(alice_client)
    assert any(INVALID in words for words in said(alice_client))
    assert server.requests == []


def test_a_code_is_not_traded_where_the_bundle_went_meanwhile(
    connector, alice_client, server, authority
):
    """A new bundle is a new connector to a sign-in that is under way: it begins anew."""
    back = sent_back(departure(alice_client), authority.bundle)
    with_bundle(connector, "")
    page = alice_client.get(back)
    assert page.status_code == 400
    assert "choose “Sign in” to begin again" in page.content.decode()
    assert not server.asked("/token")
    assert grant_of(connector) is None


def test_a_renewal_without_it_is_a_failure_that_keeps_the_tokens(
    connector, alice_client, server, authority
):
    sign_in(alice_client, authority)
    look(connector)
    kept = grant_of(connector).refresh_token
    aged(connector)
    changed = look(with_bundle(connector, ""))
    assert status(changed) is Status.FAILED
    assert changed.failure.startswith("The sign-in cannot be renewed at 127.0.0.1")
    assert INVALID in changed.failure
    assert grant_of(connector).refresh_token == kept
    assert not server.asked("/token", grant_type="refresh_token")
    assert status(look(with_bundle(connector, authority.bundle))) is Status.READY
