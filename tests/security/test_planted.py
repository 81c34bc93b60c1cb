"""A marker is planted wherever a secret passes, and looked for wherever anything is kept."""

from __future__ import annotations

import io
import logging

import pytest
import redis
from celery.signals import before_task_publish
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.test import Client as Browser
from django.utils import timezone

from connectors.actions import add_connector, connect_connector
from connectors.models import Connector, OAuthGrant, Secret
from connectors.oauth.tokens import Client
from connectors.runtime import close_runtime
from connectors.tasks import check_connector, list_connectors
from overview import fragments
from overview.refresh import refresh
from tests.connectors.outside import Outside, install, site_on_a_port, token_for, tool
from tests.overview.factories import entry
from tests.overview.recorded import recording
from tests.servers.raw import Error, raw_server
from workspaces.sign_in_links import sign_in_path

MARKER = "pLaNtEd-5e3c9a"


class Said:
    """All that was logged at the levels that the settings let through, and all that was queued."""

    def __init__(self):
        self.log = io.StringIO()
        self.handler = logging.StreamHandler(self.log)
        self.handler.setFormatter(logging.getLogger().handlers[0].formatter)
        self.messages = []

    def note(self, sender=None, body=None, headers=None, **_):
        self.messages.append(f"{sender} {body} {headers}")


@pytest.fixture
def recorded():
    with recording() as found:
        yield found


@pytest.fixture
def said():
    said = Said()
    root = logging.getLogger()
    level = root.level
    root.addHandler(said.handler)
    root.setLevel(logging.DEBUG)
    before_task_publish.connect(said.note)
    yield said
    root.removeHandler(said.handler)
    root.setLevel(level)


def echo(request):
    """A server that says back whatever it was sent."""
    return Error(-32603, f"You sent {request.headers}", {"you": dict(request.headers)})


def work_with_secrets(acme, server):
    """A connector with a secret of every kind, checked, listed and read."""
    server.on("resources/list", {"resources": [entry("a")]})
    server.on("resources/read", echo)
    server.on("tools/list", echo)
    server.on("resources/templates/list", echo)
    url = f"{server.url}?key={{key}}"
    connector = Connector(workspace=acme, slug="a", name="A", url=url)
    secrets = [
        Secret(kind="bearer", name="token", value=f"bearer-{MARKER}"),
        Secret(kind="header", name="X-Key", value=f"header-{MARKER}"),
        Secret(kind="variable", name="key", value=f"variable-{MARKER}"),
        Secret(kind="client", name="client_secret@https://x.example", value=f"client-{MARKER}"),
    ]
    add_connector(connector, secrets, by=None)
    connect_connector(connector, by=None)
    check_connector(connector.pk)
    list_connectors([connector.pk])
    refresh([connector.pk])
    assert server.count("resources/read") and server.count("tools/list")
    assert MARKER in str([request.headers for request in server.requests])


def grant(acme):
    facts = dict.fromkeys(["issuer", "token_endpoint", "resource"], "https://x.example")
    OAuthGrant.objects.create(
        connector=install(acme, "signed-in"),
        client=Client(id="x", secret=MARKER, method="client_secret_basic").to_json(),
        access_token=MARKER,
        refresh_token=MARKER,
        issued_at=timezone.now(),
        signed_in_at=timezone.now(),
        **facts,
    )


def call_from_outside(acme, alice, server):
    """What an agent sends and gets are contents, and its token is a secret."""
    server.on("tools/call", echo)
    install(acme, "mail", server.url, listings={"tools": [tool("send")]})
    with site_on_a_port() as site:
        agent = Outside(site, "acme", token_for(acme, alice))
        agent.call("mail__send", {"text": MARKER})
        Outside(site, "acme", f"nb_{MARKER}").post()
    return agent.token


def meet_errors(alice_client, monkeypatch):
    """A page that fails with a secret in its hands and in its message."""

    def fail(*_):
        held = MARKER
        raise RuntimeError("The page failed.") from ValueError(held[:3])

    monkeypatch.setattr(fragments, "overview_of", fail)
    alice_client.raise_request_exception = False
    answer = alice_client.get(f"/w/acme/?token={MARKER}", headers={"authorization": MARKER})
    assert answer.status_code == 500
    return answer.content.decode()


def in_the_database():
    """Every value of every table, as text."""
    rows = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{table}"')
            rows += [(table, str(_plain(row))) for row in cursor.fetchall()]
    return rows


def _plain(row):
    return [bytes(each) if isinstance(each, memoryview) else each for each in row]


def in_redis():
    if not settings.REDIS_URL:
        return []
    client = redis.Redis.from_url(settings.REDIS_URL)
    return [f"{key!r} {client.dump(key)!r}" for key in client.scan_iter()]


def test_a_planted_secret_is_kept_and_said_nowhere(
    acme, alice, alice_client, transactional_db, monkeypatch, said, recorded
):
    link = sign_in_path(alice)
    Browser().get(link)
    Browser().post("/sign-in/", {"email": alice.email, "password": MARKER})
    Browser().get(f"/oauth/callback/?code={MARKER}&state={MARKER}")
    with raw_server(
        capabilities={"resources": {}, "tools": {}, "extensions": {"ai.nimblebrain/facets": {}}}
    ) as server:
        work_with_secrets(acme, server)
        grant(acme)
        token = call_from_outside(acme, alice, server)
    close_runtime()
    pages = [
        alice_client.get(f"/w/acme/{page}").content.decode()
        for page in (
            "connectors/",
            "connectors/a/",
            "connectors/a/configure/",
            "traces/",
            "audit/",
            "tokens/",
            "attention.json",
            "tools/",
        )
    ]
    pages.append(meet_errors(alice_client, monkeypatch))
    database = in_the_database()
    assert {"connectors_secret", "connectors_toolcall"} <= {table for table, _ in database}
    assert said.messages and said.log.getvalue()
    assert recorded.named("tools/call") and recorded.named(
        "GET /sign-in/link/<str:uid>/<str:token>/"
    )
    places = {
        "database": [text for _, text in database],
        "redis": in_redis(),
        "log": said.log.getvalue().splitlines(),
        "messages": said.messages,
        "spans": recorded.texts(),
        "pages": pages,
    }
    for secret in (MARKER, token, link.rsplit("/", 2)[1]):
        found = {name for name, texts in places.items() if any(secret in each for each in texts)}
        assert (secret, found) == (secret, set())


def test_a_dump_holds_no_secret(acme):
    add_connector(
        Connector(workspace=acme, slug="a", name="A", url="https://a.example/mcp"),
        [Secret(kind="bearer", name="token", value=MARKER)],
        by=None,
    )
    written = io.StringIO()
    with pytest.raises(CommandError, match="not serialised"):
        call_command("dumpdata", stdout=written)
    assert MARKER not in written.getvalue()


def test_what_is_shown_of_a_secret_in_code_holds_nothing_of_it():
    for shown in (repr, str, "{0!r} {0}".format):
        assert MARKER not in shown(Secret(kind="bearer", name="token", value=MARKER))
        assert MARKER not in shown(OAuthGrant(access_token=MARKER, refresh_token=MARKER))
