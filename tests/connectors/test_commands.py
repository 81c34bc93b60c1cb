"""`manage.py connector` and `manage.py rotate-secrets`, against real servers."""

from __future__ import annotations

import io
import json

import pytest
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command

from connectors.models import Connector, ListingKind, Secret, ToolCall
from connectors.protocol.identifiers import FACETS
from connectors.runtime import close_runtime
from tests.connectors.records import MARKER, added, ready
from tests.servers.raw import Reply, raw_server
from workspaces.models import Membership

pytestmark = pytest.mark.django_db

CAPABILITIES = {"resources": {}, "tools": {}, "extensions": {FACETS: {}}}


@pytest.fixture(autouse=True)
def _no_sessions_left():
    yield
    close_runtime()


@pytest.fixture
def server():
    with raw_server(capabilities=CAPABILITIES) as server:
        server.on("resources/templates/list", {"resourceTemplates": [{"uriTemplate": "a://{b}"}]})
        server.on("tools/list", {"tools": [{"name": "send", "inputSchema": {}}]})
        yield server


def run(*words):
    """What the command prints."""
    out = io.StringIO()
    call_command("connector", *words, stdout=out)
    return out.getvalue()


def run_json(*words):
    return json.loads(run(*words, "--json"))


def failing(*words):
    """What it prints, and the words with which it ends in status 1."""
    out = io.StringIO()
    with pytest.raises(CommandError) as refused:
        call_command("connector", *words, stdout=out)
    return out.getvalue(), str(refused.value)


def test_add_stores_a_connector_at_rest(acme):
    placement = '{"slot": "sidebar.apps", "route": "mail"}'
    words = ["add", "acme", "mail", "https://mail.example.com/mcp", "--name", "Mail"]
    words += ["--bearer", MARKER, "--header", f"X-Team: {MARKER}", "--placement", placement]
    made = run_json(*words)
    assert made == {
        "slug": "mail",
        "name": "Mail",
        "url": "https://mail.example.com/mcp",
        "is_personal": False,
        "status": "at_rest",
        "label": "Not connected",
        "missing": [],
        "failure": "",
        "checked_at": None,
        "latency_ms": None,
        "revision": "",
        "server_name": "",
        "server_version": "",
        "advertises_facets": False,
    }
    assert Connector.objects.get().placements == [json.loads(placement) | {"priority": 100}]
    assert {each.name: each.value for each in Secret.objects.all()} == {
        "token": MARKER,
        "X-Team": MARKER,
    }


@pytest.mark.parametrize("way", ["stdin", "environment"])
def test_a_token_need_not_be_on_the_command_line(acme, monkeypatch, way):
    words = ["add", "acme", "mail", "https://mail.example.com/mcp", "--name", "Mail"]
    if way == "stdin":
        monkeypatch.setattr("sys.stdin", io.StringIO(f"{MARKER}\nmore\n"))
        words += ["--bearer", "-"]
    else:
        monkeypatch.setenv("CONNECTOR_BEARER", MARKER)
    run(*words)
    assert Secret.objects.get().value == MARKER


@pytest.mark.requirement("F-144")
def test_connect_works_without_a_worker_and_takes_the_listings(acme, server):
    words = ["add", "acme", "mail", server.url, "--name", "Mail", "--connect"]
    made = run_json(*words)
    assert (made["status"], made["revision"], made["server_name"]) == ("ready", "2026-07-28", "raw")
    assert made["advertises_facets"] is True
    assert isinstance(made["latency_ms"], int)
    listings = {each.kind: each for each in Connector.objects.get().listings.all()}
    assert listings[ListingKind.TEMPLATES].entries == [{"uriTemplate": "a://{b}"}]
    assert listings[ListingKind.TOOLS].entries[0]["name"] == "send"


def test_check_says_how_it_stands_and_how_long_it_took(acme, server):
    run("add", "acme", "mail", server.url, "--name", "Mail", "--connect")
    assert run("check", "acme", "mail").startswith("Mail: Ready, ")


@pytest.mark.requirement("F-144")
def test_a_server_that_is_not_there_ends_in_status_1_with_the_reason(acme, server):
    run("add", "acme", "mail", server.url, "--name", "Mail")
    server.intercept = lambda request: Reply(status=503)
    said, refused = failing("connect", "acme", "mail")
    assert said.startswith("Mail: Failed: ")
    assert refused == "Mail is not ready."
    printed, _ = failing("check", "acme", "mail", "--json")
    assert json.loads(printed)["status"] == "failed"
    assert json.loads(printed)["failure"]


def test_a_refused_token_is_reconnection_needed_and_never_printed(acme, server):
    run("add", "acme", "mail", server.url, "--name", "Mail", "--bearer", MARKER)
    server.intercept = lambda request: Reply(status=401, body=f"no {MARKER}".encode())
    said, refused = failing("connect", "acme", "mail", "--json")
    assert json.loads(said)["status"] == "reconnection_needed"
    assert MARKER not in said + refused
    connector = Connector.objects.get()
    assert MARKER not in connector.failure + connector.failure_detail


def test_what_was_not_asked_for_or_misses_a_setting_is_not_ready(acme):
    added(acme)
    assert failing("check", "acme", "mail")[0] == "Mail: Not connected\n"
    added(acme, "books", url="https://{tenant}.example.com/")
    said, _ = failing("connect", "acme", "books")
    assert said == "Books: Configuration required: tenant\n"


def test_list_gives_each_connector_with_its_status(acme, other):
    ready(acme)
    added(acme, "crm")
    added(other, "hidden")
    listed = run_json("list", "acme")
    assert listed["workspace"] == "acme"
    assert [(each["slug"], each["status"]) for each in listed["connectors"]] == [
        ("crm", "at_rest"),
        ("mail", "ready"),
    ]
    assert run("list", "acme") == "crm\tCrm\tNot connected\nmail\tMail\tReady\n"


def test_disconnect_puts_it_at_rest(acme):
    ready(acme)
    assert run_json("disconnect", "acme", "mail")["label"] == "Disconnected"


def test_remove_wants_yes_or_the_name(acme, monkeypatch):
    ready(acme)
    monkeypatch.setattr("sys.stdin", io.StringIO("mail\n"))
    assert failing("remove", "acme", "mail")[1] == "That is not its name. Nothing was removed."
    monkeypatch.setattr("sys.stdin", io.StringIO("Mail\n"))
    assert run("remove", "acme", "mail").endswith("Mail is removed.\n")
    added(acme, "crm")
    assert run_json("remove", "acme", "crm", "--yes")["removed"] is True
    assert not Connector.objects.exists()


def test_a_personal_connector_belongs_to_a_member(acme, alice):
    words = ["mail", "https://mail.example.com/mcp", "--name", "Mail"]
    made = run_json("add", "acme", *words, "--personal", "alice@example.com")
    assert made["is_personal"] is True
    connector = Connector.objects.get()
    assert (connector.workspace, connector.owner) == (None, alice)
    assert run_json("list", "acme")["connectors"] == []
    mine = run_json("list", "acme", "--personal", "alice@example.com")
    assert [each["slug"] for each in mine["connectors"]] == ["mail"]
    Membership.objects.all().delete()
    _, refused = failing("list", "acme", "--personal", "alice@example.com")
    assert refused == "alice@example.com is not a member of acme."


DESCRIPTION = {
    "name": "com.example/books",
    "title": "Books",
    "remotes": [
        {
            "type": "streamable-http",
            "url": "https://books.example.com/{tenant}/mcp",
            "headers": [{"name": "X-Api-Key", "isRequired": True}],
        }
    ],
}


def test_a_server_json_gives_name_address_and_settings(acme, tmp_path):
    file = tmp_path / "server.json"
    file.write_text(json.dumps(DESCRIPTION))
    words = ["add", "acme", "books", "--server-json", str(file)]
    made = run_json(*words, "--header", f"x-api-key: {MARKER}", "--variable", "tenant=7")
    assert (made["name"], made["missing"]) == ("Books", [])
    assert Secret.objects.get(kind="header").name == "X-Api-Key"
    words[2] = "more"
    assert set(run_json(*words, "--name", "More")["missing"]) == {"X-Api-Key", "tenant"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["add", "acme", "mail", "https://mail.example.com"], "Give it a name: --name NAME."),
        (["add", "acme", "mail", "--name", "Mail"], "The address has spaces"),
        (["add", "acme", "mail", "http://10.0.0.1/", "--name", "M"], "not a public address"),
        (["add", "acme", "add", "https://m.example.com", "--name", "M"], "is reserved"),
        (["add", "acme", "Mail", "https://m.example.com", "--name", "M"], "Lower-case"),
        (["add", "acme", "taken", "https://m.example.com", "--name", "M"], "already exists"),
        (["add", "nowhere", "mail", "https://m.example.com", "--name", "M"], "no workspace"),
        (["add", "acme", "x", "--name", "M", "--server-json", "/nowhere.json"], "cannot be read"),
        (["add", "acme", "x", "--name", "M", "--stdio", "sh"], "not one of STDIO_SERVERS"),
        (["check", "acme", "nothing"], "There is no connector “nothing”."),
    ],
)
def test_what_cannot_be_done_is_said_in_words(acme, words, said):
    added(acme, "taken")
    assert said in failing(*words)[1]


@pytest.mark.parametrize(
    "option",
    [
        ["--header", f"X Key: {MARKER}"],
        ["--header", f"X-Key {MARKER}"],
        ["--header", f"X-Key: {MARKER}\nHost: x"],
        ["--variable", MARKER],
        ["--bearer", f"{MARKER} x"],
        ["--placement", "{"],
        ["--placement", '{"slot": "main", "route": "/etc"}'],
        ["--placement", '{"slot": "main", "label": "a\\u0000b"}'],
        ["--placement", '{"slot": "main", "label": "a\\ud800b"}'],
        ["--placement", '{"slot": "main\\u0000"}'],
        ["--variable", "tenant=a\x00b"],
        ["--header", "X-Key: a\udcffb"],
    ],
)
def test_a_bad_option_is_refused_without_repeating_a_secret(acme, option):
    words = ["add", "acme", "mail", "https://mail.example.com/mcp", "--name", "Mail"]
    said, refused = failing(*words, *option)
    assert MARKER not in said + refused
    assert not Connector.objects.exists()


def rotate():
    out = io.StringIO()
    call_command("rotate-secrets", "--json", stdout=out)
    return json.loads(out.getvalue())


def test_rotating_lets_the_old_key_go(acme, settings):
    added(acme, secrets=[("bearer", "token"), ("header", "X-Key")])
    fresh = Fernet.generate_key().decode()
    settings.SECRETS_KEYS = [fresh, *settings.SECRETS_KEYS]
    assert rotate() == {"rotated": 2, "unreadable": []}
    settings.SECRETS_KEYS = [fresh]
    assert {each.value for each in Secret.objects.all()} == {MARKER}


def test_a_secret_that_no_key_reads_is_named_and_makes_its_connector_failed(acme, settings, server):
    run("add", "acme", "mail", server.url, "--name", "Mail", "--bearer", MARKER)
    settings.SECRETS_KEYS = [Fernet.generate_key().decode()]
    with pytest.raises(CommandError, match="token of Mail"):
        rotate()
    said, _ = failing("connect", "acme", "mail")
    assert said == "Mail: Failed: A stored secret cannot be decrypted: enter it again.\n"
    assert not server.requests
    assert not ToolCall.objects.exists()
