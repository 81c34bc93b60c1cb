"""Diagnose as people reach it: the page, `connector diagnose`, and `diagnose-server`."""

from __future__ import annotations

import io
import json
import re

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client

from connectors.models import Connector, OAuthGrant
from connectors.protocol.identifiers import RESOURCE_ARGUMENTS
from connectors.runtime import close_runtime
from tests.connectors.diagnosing import diagnose_server
from tests.connectors.records import MARKER, added, asked, ready
from tests.overview.factories import entry
from tests.overview.served import FACETED, publish
from tests.servers.raw import LEGACY, MODERN, Error, Reply, raw_server
from workspaces.models import AuditEntry

PAGE = "/w/acme/connectors/mail/diagnosis/"


@pytest.fixture(autouse=True)
def _no_sessions_left():
    yield
    close_runtime()


@pytest.fixture
def server():
    with raw_server(revisions=(MODERN, LEGACY), capabilities={**FACETED, "tools": {}}) as server:
        publish(server, entry())
        server.on("tools/list", {"tools": [{"name": "send", "inputSchema": {}}]})
        yield server


def text_of(answer):
    html = answer.content.decode()
    main = html[html.index("<main") : html.index("</main>")]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", main))


@pytest.mark.django_db
def test_an_admin_sees_each_step_and_the_text_to_copy(alice_client, acme, server):
    publish(server, entry(), entry("bad", title=None))
    ready(acme, url=server.url, secrets=[("bearer", "token", MARKER)])
    assert PAGE in alice_client.get("/w/acme/connectors/mail/").content.decode()
    before = alice_client.get(PAGE)
    assert "It walks the whole way" in text_of(before)
    assert server.requests == []
    for _ in range(2):  # A second click walks again and changes nothing.
        answer = alice_client.post(PAGE)
        page = text_of(answer)
        assert "The server answers, and 1 step failed: Resources." in page
        assert "“bad”: title is missing or not text." in page
        assert "whoever makes or runs the server" in page
        assert "Diagnosis of Mail (127.0.0.1" in page
        assert answer["Cache-Control"] == "private, no-store"
        assert MARKER not in answer.content.decode()
    assert {each.headers["authorization"] for each in server.requests} == {f"Bearer {MARKER}"}
    assert Connector.objects.get().connection == "ready"
    assert AuditEntry.objects.filter(action="connector diagnosed").count() == 2


@pytest.mark.django_db
def test_only_admins_diagnose(bob_client, carol_client, acme, server):
    ready(acme, url=server.url)
    for client, status in ((bob_client, 403), (carol_client, 404)):
        assert client.get(PAGE).status_code == status
        assert client.post(PAGE).status_code == status
    assert PAGE not in bob_client.get("/w/acme/connectors/mail/").content.decode()
    assert server.requests == []


@pytest.mark.django_db
def test_the_owner_of_a_personal_connector_diagnoses_it_and_nobody_else(
    alice_client, bob_client, acme, bob, server
):
    server.intercept = lambda _: Reply(401)
    added(None, "notes", [("bearer", "token")], owner=bob, url=server.url, name="Notes")
    page = "/account/connectors/notes/diagnosis/"
    assert page in bob_client.get("/account/connectors/").content.decode()
    assert "It walks the whole way" in text_of(bob_client.get(page))
    # Not even the admin of every workspace that its owner is in.
    assert [alice_client.get(page).status_code, alice_client.post(page).status_code] == [404, 404]
    assert alice_client.post("/w/acme/connectors/notes/diagnosis/").status_code == 404
    assert Client().get(page)["Location"].startswith("/sign-in/")
    assert server.requests == []
    answer = bob_client.post(page)
    assert "For whoever owns this connector." in text_of(answer)
    assert "workspace admin" not in text_of(answer)
    assert "Back to your connectors" in text_of(answer)
    assert answer["Cache-Control"] == "private, no-store"
    assert MARKER not in answer.content.decode()
    assert server.seen("server/discover")[0].headers["authorization"] == f"Bearer {MARKER}"
    assert not AuditEntry.objects.exists()


@pytest.mark.django_db
def test_a_connector_at_rest_can_be_diagnosed_and_stays_at_rest(alice_client, acme, server):
    added(acme, url=server.url)
    assert "Every step went well." in text_of(alice_client.post(PAGE))
    assert Connector.objects.get().asked_at is None


@pytest.mark.django_db(transaction=True)
def test_a_failed_connector_is_checked_at_once_when_the_walk_gets_through(
    alice_client, acme, server, queued
):
    connector = ready(acme, url=server.url)
    queued.clear()
    Connector.objects.update(connection="failed", url="http://127.0.0.1:9/mcp")
    alice_client.post(PAGE)
    assert queued == []
    Connector.objects.update(url=server.url)
    alice_client.post(PAGE)
    assert queued == [("check_connector", connector.pk)]


@pytest.mark.django_db
def test_settings_that_are_missing_end_the_walk_before_it_begins(alice_client, acme, server):
    needed = [{"kind": "bearer", "name": "token", "is_secret": True}]
    asked(added(acme, url=server.url, required=needed))
    page = text_of(alice_client.post(PAGE))
    assert "Without a value: token." in page
    assert "For a workspace admin" in page
    assert server.requests == []


@pytest.mark.django_db
def test_a_secret_that_no_key_reads_is_said_and_nothing_is_sent(alice_client, acme, server):
    added(acme, url=server.url, secrets=[("bearer", "token", MARKER)])
    with connection.cursor() as cursor:
        cursor.execute("UPDATE connectors_secret SET value = %s", [b"gAAAA-of-another-key"])
    page = text_of(alice_client.post(PAGE))
    assert "cannot be decrypted" in page
    assert server.requests == []


@pytest.mark.django_db
def test_a_part_of_the_address_that_is_secret_is_in_no_words(alice_client, acme, server):
    url = server.url.replace("/mcp", "/{key}/mcp")
    needed = [{"kind": "variable", "name": "key", "is_secret": True}]
    added(acme, url=url, required=needed, secrets=[("variable", "key", MARKER)])
    server.on("resources/list", lambda _: Error(-32603, f"No tenant {MARKER}"))
    answer = alice_client.post(PAGE)
    assert {each.path for each in server.requests} == {f"/{MARKER}/mcp"}
    assert "No tenant [secret]" in text_of(answer)
    assert MARKER not in answer.content.decode()


@pytest.mark.django_db
def test_a_program_that_nobody_named_is_the_operators(alice_client, acme):
    added(acme, url="", transport="stdio", command="files")
    assert "There is no program “files”. Name it in STDIO_SERVERS. For whoever runs" in text_of(
        alice_client.post(PAGE)
    )


@pytest.mark.django_db
def test_the_command_says_it_in_words_and_in_json(acme, server):
    added(acme, url=server.url)
    out = io.StringIO()
    call_command("connector", "diagnose", "acme", "mail", stdout=out)
    assert out.getvalue().startswith("Diagnosis of Mail (127.0.0.1")
    server.intercept = lambda _: Reply(503)
    out = io.StringIO()
    with pytest.raises(CommandError, match="ends at Protocol"):
        call_command("connector", "diagnose", "acme", "mail", "--json", stdout=out)
    made = json.loads(out.getvalue())
    assert made["verdict"] == "unreachable"
    assert made["steps"][-1]["findings"][0]["fixer"] == "whoever makes or runs the server"


def test_an_author_needs_no_database_and_reaches_this_machine(server, settings):
    """No mark for the database: pytest-django refuses every statement."""
    settings.CONNECTOR_ALLOWED_NETWORKS = []
    text, status = diagnose_server(server.url)
    assert status == 0
    assert "As a host of 2025: The server speaks 2025-11-25 too." in text


def test_the_exit_status_tells_a_broken_rule_from_no_server(server):
    meta = {RESOURCE_ARGUMENTS: {"arguments": {"cited": {"schemes": ["*"]}}}}
    server.on("tools/list", {"tools": [{"name": "send", "inputSchema": {}, "_meta": meta}]})
    text, status = diagnose_server(server.url, "--json")
    made = json.loads(text)
    assert (status, made["verdict"]) == (1, "broken")
    assert any("no wildcard" in f["words"] for s in made["steps"] for f in s["findings"])
    server.intercept = lambda _: Reply(502)
    assert diagnose_server(server.url)[1] == 2


def test_a_token_comes_from_the_environment_and_is_sent_and_never_printed(server, monkeypatch):
    monkeypatch.setenv("MY_TOKEN", MARKER)
    server.on("tools/list", lambda _: Error(-32603, MARKER))
    words = ["--bearer", "MY_TOKEN", "--header", f"X-Team: {MARKER}2"]
    text, _ = diagnose_server(server.url, *words)
    assert MARKER not in text
    assert {each.headers["authorization"] for each in server.requests} == {f"Bearer {MARKER}"}
    assert {each.headers["x-team"] for each in server.requests} == {f"{MARKER}2"}


@pytest.mark.parametrize(
    "words",
    [
        ["ftp://example.com"],
        ["http://127.0.0.1/mcp", "--header", "nothing"],
        ["http://127.0.0.1/mcp", "--header", "Host: x"],
        ["http://127.0.0.1/mcp", "--bearer", "NO_SUCH_VARIABLE"],
    ],
)
def test_a_wrong_command_is_said_and_has_the_status_of_not_reached(words):
    with pytest.raises(CommandError) as refused:
        diagnose_server(*words)
    assert refused.value.returncode == 2


@pytest.mark.django_db
def test_a_sign_in_is_used_and_its_tokens_are_in_no_words(alice_client, acme, server):
    from django.utils import timezone

    connector = added(acme, url=server.url)
    OAuthGrant.objects.create(
        connector=connector,
        issuer="https://auth.example.com",
        token_endpoint="https://auth.example.com/token",
        resource=server.url,
        client=json.dumps({"id": "us", "secret": None, "method": "none"}),
        access_token=MARKER,
        issued_at=timezone.now(),
        signed_in_at=timezone.now(),
    )
    server.on("resources/list", lambda _: Error(-32603, MARKER))
    answer = alice_client.post(PAGE)
    assert MARKER not in answer.content.decode()
    assert {each.headers["authorization"] for each in server.requests} == {f"Bearer {MARKER}"}
