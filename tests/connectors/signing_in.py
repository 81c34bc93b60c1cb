"""Signing in as the tests do it: Alice in the browser, the check as the worker makes it."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import parse_qsl, urlsplit

from django.utils import timezone

from connectors.checks import look_at
from connectors.models import Connector, OAuthGrant
from connectors.queries import standing_now, targets_of
from connectors.runtime import close_runtime, run
from tests.connectors.records import added, asked
from tests.servers.authorization import sent_back


def look(connector):
    """Check a connector as the worker does; the connector as it is then."""
    connector.refresh_from_db()
    look_at(connector, timezone.now())
    return Connector.objects.get(pk=connector.pk)


def status(connector):
    return standing_now(Connector.objects.get(pk=connector.pk), timezone.now()).status


def wanting(workspace, server, **fields):
    """A connector whose server was asked once, without a credential."""
    return look(asked(added(workspace, "mail", url=server.url, **fields)))


def press_sign_in(client, slug="mail"):
    """Press the button; what the browser gets."""
    return client.post(f"/w/acme/connectors/{slug}/sign-in/")


def departure(client, slug="mail"):
    """The address that the browser is sent to."""
    response = press_sign_in(client, slug)
    assert response.status_code == 200, said(client, slug)
    refresh = response.headers["Refresh"]
    assert refresh.startswith("0; url=")
    return refresh.removeprefix("0; url=")


def query_of(url):
    return dict(parse_qsl(urlsplit(url).query))


def sign_in(client, slug="mail"):
    """All of it: there, agree, back. The last answer."""
    return client.get(sent_back(departure(client, slug)), follow=True)


def signed_in(workspace, client, server):
    """A ready connector of a server that somebody signed in to."""
    connector = wanting(workspace, server)
    sign_in(client)
    return look(connector)


def said(client, slug="mail"):
    """What the connector's page says at its top."""
    page = client.get(f"/w/acme/connectors/{slug}/")
    return [str(each) for each in page.context["messages"]]


def messages_in(response):
    return [str(each) for each in response.context["messages"]]


def target(connector):
    found = targets_of(Connector.objects.filter(pk=connector.pk), timezone.now())
    return found[connector.pk]


def read(connector, uri="acme://drafts", seconds=10):
    """Read a resource as the overview does."""
    aim = target(connector)
    return run(lambda sessions: sessions.read_resource(aim, uri, seconds), seconds + 5)


def grant_of(connector):
    return OAuthGrant.objects.filter(connector=connector).first()


def aged(connector, *, life=3600, left=0):
    """The tokens have so many seconds left of their life; no connection remembers better."""
    close_runtime()
    expires_at = timezone.now() + timedelta(seconds=left)
    issued_at = expires_at - timedelta(seconds=life)
    OAuthGrant.objects.filter(connector=connector).update(
        issued_at=issued_at, expires_at=expires_at
    )
