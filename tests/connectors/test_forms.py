"""Adding and configuring through the browser: what is taken, what is refused, what is kept."""

from __future__ import annotations

import json
import logging

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from connectors.models import Connector, Secret
from connectors.protocol.identifiers import HOST
from tests.connectors.records import MARKER, added, ready, secret, sheet
from workspaces.models import AuditEntry

ADD = "/w/acme/connectors/add/"
CONFIGURE = "/w/acme/connectors/mail/configure/"
DESCRIPTION = {
    "name": "com.example/books",
    "title": "Books",
    "description": "Invoices",
    "version": "1.0.0",
    "remotes": [
        {
            "type": "streamable-http",
            "url": "https://{region}.books.example.com/mcp",
            "variables": {"region": {"description": "Region", "choices": ["eu", "us"]}},
            "headers": [
                {
                    "name": "X-Api-Key",
                    "description": "API key",
                    "isRequired": True,
                    "isSecret": True,
                },
                {"name": "X-Format", "value": "compact"},
                {
                    "name": "Authorization",
                    "value": "Token {key}",
                    "isRequired": True,
                    "variables": {"key": {"description": "Access key", "isSecret": True}},
                },
            ],
        }
    ],
    "_meta": {HOST: {"placements": [{"slot": "sidebar.apps", "route": "books", "label": "Books"}]}},
}

pytestmark = pytest.mark.django_db


def placement(number, **fields):
    return {f"placements-{number}-{name}": value for name, value in fields.items()}


def header(number, name, value):
    return {f"headers-{number}-name": name, f"headers-{number}-value": value}


def errors_of(answer):
    assert answer.status_code == 200
    return " ".join(words for _, words in answer.context["sheet"].problems())


def values():
    return {(each.kind, each.name): each.value for each in Secret.objects.all()}


def test_add_leaves_it_at_rest_and_add_and_connect_asks_for_it(acme, alice, alice_client):
    answer = alice_client.post(ADD, sheet(add="1"), follow=True)
    assert answer.redirect_chain == [("/w/acme/connectors/mail/", 302)]
    assert [str(each) for each in answer.context["messages"]] == ["Mail is added."]
    assert Connector.objects.get().asked_at is None
    alice_client.post(ADD, sheet(name="Post", connect="1"))
    assert Connector.objects.get(slug="post").asked_by == alice


def test_everything_that_was_filled_in_is_stored(acme, alice, alice_client):
    alice_client.post(
        ADD,
        sheet(
            **{"secret-bearer-token": f"Bearer {MARKER}"},
            **header(0, "X-Team", "red"),
            **placement(0, slot="sidebar.apps", route="mail", label="Mail", priority="20"),
            **placement(1, slot="main", route="inbox", icon="inbox"),
        ),
    )
    connector = Connector.objects.get()
    assert (connector.name, connector.url) == ("Mail", "https://mail.example.com/mcp")
    assert connector.placements == [
        {"slot": "sidebar.apps", "route": "mail", "label": "Mail", "priority": 20},
        {"slot": "main", "route": "inbox", "icon": "inbox"},
    ]
    assert values() == {("bearer", "token"): MARKER, ("header", "X-Team"): "red"}
    assert {each.set_by for each in Secret.objects.all()} == {alice}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"name": ""}, "Enter a name."),
        ({"url": ""}, "Enter the address of its MCP endpoint."),
        ({"name": " \u200b "}, "Enter a name."),
        ({"name": "x" * 101}, "at most 100"),
        ({"name": "CRM"}, "Another connector is named CRM already."),
        ({"url": ""}, "address"),
        ({"url": "ftp://x.example.com"}, "https://"),
        ({"url": "http://10.0.0.1/mcp"}, "10.0.0.1 is not a public address."),
        ({"url": "https://u:p@x.example.com/"}, "user name and password"),
        ({"secret-bearer-token": "a b"}, "The token has spaces"),
        (header(0, "X-Key", ""), "Enter a value."),
        (header(1, "", "x"), "Enter the header's name."),
        (header(0, "Host", "x"), "Host belongs to the connection itself."),
        (header(0, "X-A", "1") | header(1, "x-a", "2"), "The header x-a is given more than once."),
        (
            header(0, "Authorization", "Basic x") | {"secret-bearer-token": "x"},
            "The header authorization is given more than once. A token is sent as that header.",
        ),
        (placement(0, route="mail"), "Slot is missing"),
        (placement(1, slot="main", route="../etc"), "Route cannot be used: ../etc."),
        (placement(0, slot="main", route="a", icon="<svg>"), "Icon cannot be used: <svg>."),
        (placement(0, slot="main", priority="x"), "Enter a whole number."),
        ({"headers-TOTAL_FORMS": "33"}, "at most 32"),
        ({"headers-TOTAL_FORMS": "junk"}, "ManagementForm"),
        ({"url": "https://a.example.com/\x00"}, "Null characters"),
    ],
)
def test_what_cannot_be_is_refused_in_words_and_nothing_is_stored(
    acme, alice_client, fields, words
):
    added(acme, "crm", name="crm")
    assert words in errors_of(alice_client.post(ADD, sheet(**fields)))
    assert Connector.objects.count() == 1


def test_what_was_typed_stays_except_for_secrets(acme, alice_client):
    fields = {"name": "<Mail>", "url": "nonsense", "secret-bearer-token": MARKER}
    fields |= header(0, "X-Team", MARKER + "2") | placement(0, slot="main", route="mail")
    page = alice_client.post(ADD, sheet(**fields)).content.decode()
    for kept in ("&lt;Mail&gt;", "nonsense", "X-Team", 'value="mail"'):
        assert kept in page
    assert MARKER not in page
    assert "Tokens and other secrets are not kept: enter them again." in page


def test_each_error_links_to_its_field(acme, alice_client):
    answer = alice_client.post(ADD, sheet(url="nonsense", **header(0, "X-Key", "")))
    page = answer.content.decode()
    targets = [target for target, _ in answer.context["sheet"].problems()]
    assert targets == ["id_url", "id_headers-0-value"]
    assert all(f'id="{target}"' in page and f'href="#{target}"' in page for target in targets)


def test_two_clicks_add_one_connector(acme, alice_client):
    for _ in range(2):
        alice_client.post(ADD, sheet(connect="1"))
    assert Connector.objects.count() == 1


def test_programs_are_offered_only_where_the_operator_lists_some(acme, alice_client, settings):
    settings.STDIO_SERVERS = {}
    assert "Program" not in alice_client.get(ADD).content.decode()
    chosen = {"transport": "stdio", "command": "files", "url": ""}
    assert "address" in errors_of(alice_client.post(ADD, sheet(**chosen)))
    settings.STDIO_SERVERS = {"files": ["mcp-files", "/srv"]}
    assert "mcp-files" not in alice_client.get(ADD).content.decode()
    unlisted = sheet(**{**chosen, "command": "mcp-files"})
    assert "valid choice" in errors_of(alice_client.post(ADD, unlisted))
    assert "Choose a program." in errors_of(
        alice_client.post(ADD, sheet(**{**chosen, "command": ""}))
    )
    assert alice_client.post(ADD, sheet(**chosen)).status_code == 302
    assert Connector.objects.get().command == "files"


def imported(client, content, **extra):
    return client.post(ADD, {"import": "1", "import-text": content, **extra})


def test_a_server_json_fills_in_the_form_and_adds_nothing_yet(acme, alice_client):
    answer = imported(alice_client, json.dumps(DESCRIPTION))
    page = answer.content.decode()
    assert answer.status_code == 200
    assert "Nothing is added yet." in page
    for part in ('value="Books"', "https://{region}.books.example.com/mcp", "API key", "Region"):
        assert part in page
    assert 'value="compact"' in page
    assert not Connector.objects.exists()


def test_the_filled_in_form_adds_the_connector_with_what_it_declares(acme, alice_client):
    page = imported(alice_client, json.dumps(DESCRIPTION))
    carried = page.context["sheet"].main["server_json"].value()
    fields = {
        "name": "Books",
        "url": DESCRIPTION["remotes"][0]["url"],
        "server_json": carried,
        "secret-variable-region": "eu",
        "secret-header-X-Api-Key": MARKER,
        "secret-header-X-Format": "compact",
        "secret-variable-key": MARKER + "2",
        "connect": "1",
    }
    fields |= placement(0, slot="sidebar.apps", route="books", label="Books", priority="100")
    answer = alice_client.post(ADD, sheet(**fields), follow=True)
    assert answer.context["standing"].status == "starting"
    assert values() == {
        ("variable", "region"): "eu",
        ("header", "X-Api-Key"): MARKER,
        ("header", "X-Format"): "compact",
        ("variable", "key"): MARKER + "2",
    }
    assert answer.context["standing"].route == "books"


def test_a_declared_setting_left_empty_is_asked_for_once_it_is_connected(acme, alice_client):
    carried = json.dumps(DESCRIPTION)
    url = DESCRIPTION["remotes"][0]["url"]
    answer = alice_client.post(ADD, sheet(url=url, server_json=carried, connect="1"), follow=True)
    assert answer.context["standing"].status == "configuration_required"
    assert set(answer.context["standing"].missing) == {"X-Api-Key", "key", "region"}
    page = alice_client.get(CONFIGURE).content.decode()
    assert page.count("Required to connect.") == 3
    assert "API key" in page
    # A fixed header of the description needs nobody to fill it in.
    assert values() == {("header", "X-Format"): "compact"}


def test_an_uploaded_file_counts_like_a_pasted_one(acme, alice_client):
    file = SimpleUploadedFile("server.json", json.dumps(DESCRIPTION).encode())
    answer = alice_client.post(ADD, {"import": "1", "import-file": file})
    assert 'value="Books"' in answer.content.decode()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "Paste the contents or choose a file."),
        ("{", "This is not JSON."),
        ("[" * 100_000, "This is not JSON."),
        ("[]", "This server cannot be connected: the file is not a JSON object."),
        (json.dumps({**DESCRIPTION, "remotes": []}), "no remote speaks Streamable HTTP"),
        (json.dumps("x" * 300_000), "larger than 256 KiB"),
    ],
)
def test_a_file_that_describes_no_server_says_why(acme, alice_client, content, words):
    answer = imported(alice_client, content)
    assert answer.status_code == 200
    assert words in answer.context["import"].non_field_errors()[0]


@pytest.mark.parametrize("body", [b"\xff\xfe", b"{" * 300_000])
def test_a_file_that_is_no_text_or_too_large_is_refused(acme, alice_client, body):
    file = SimpleUploadedFile("server.json", body)
    answer = alice_client.post(ADD, {"import": "1", "import-file": file})
    assert answer.status_code == 200


def test_configure_keeps_secrets_that_are_left_empty(acme, alice, alice_client):
    ready(acme, secrets=[("bearer", "token")])
    page = alice_client.get(CONFIGURE).content.decode()
    assert "Leave it empty to keep it." in page
    answer = alice_client.post(CONFIGURE, sheet(name="Post"), follow=True)
    assert [str(each) for each in answer.context["messages"]] == ["The settings of Post are saved."]
    connector = Connector.objects.get()
    assert (connector.name, connector.slug, connector.connection) == ("Post", "mail", "ready")
    assert values() == {("bearer", "token"): MARKER}


def test_configure_replaces_and_clears_and_says_who_set_it(acme, alice, alice_client):
    before = ready(acme, secrets=[("bearer", "token"), ("header", "X-Team")])
    fields = {"secret-bearer-token": "another", "secret-clear-header-X-Team": "on"}
    alice_client.post(CONFIGURE, sheet(**fields, **header(0, "X-New", "new")))
    assert values() == {("bearer", "token"): "another", ("header", "X-New"): "new"}
    connector = Connector.objects.get()
    assert (connector.connection, connector.generation) == ("starting", before.generation + 1)
    assert "by Alice. Leave it empty to keep it." in alice_client.get(CONFIGURE).content.decode()


def test_a_value_is_replaced_or_cleared_not_both(acme, alice_client):
    ready(acme, secrets=[("bearer", "token")])
    fields = {"secret-bearer-token": "x", "secret-clear-bearer-token": "on"}
    answer = alice_client.post(CONFIGURE, sheet(**fields))
    assert "not both" in errors_of(answer)
    assert values() == {("bearer", "token"): MARKER}


@pytest.mark.parametrize(
    ("fields", "is_taken"),
    [
        ({}, False),
        ({"secret-bearer-token": "new"}, True),
        ({"secret-clear-bearer-token": "on"}, True),
    ],
)
def test_another_host_never_gets_what_was_set_for_the_first(acme, alice_client, fields, is_taken):
    ready(acme, secrets=[("bearer", "token")])
    moved = sheet(url="https://elsewhere.example.com/mcp", **fields)
    answer = alice_client.post(CONFIGURE, moved)
    if is_taken:
        assert answer.status_code == 302
        assert Connector.objects.get().connection == "starting"
    else:
        assert "leads to another server" in errors_of(answer)
        assert Connector.objects.get().url == "https://mail.example.com/mcp"


def test_another_path_of_the_same_host_keeps_the_secrets(acme, alice_client):
    ready(acme, secrets=[("bearer", "token")])
    assert alice_client.post(CONFIGURE, sheet(url="https://mail.example.com/v2")).status_code == 302
    assert values() == {("bearer", "token"): MARKER}


def test_a_connector_may_keep_its_own_name_but_not_take_anothers(acme, alice_client):
    added(acme, name="Mail")
    added(acme, "crm", name="CRM")
    assert alice_client.post(CONFIGURE, sheet(name="mail")).status_code == 302
    assert "already" in errors_of(alice_client.post(CONFIGURE, sheet(name="crm")))


def test_a_refused_change_leaves_the_heading_as_it_is(acme, alice_client):
    added(acme)
    page = alice_client.post(CONFIGURE, sheet(name="Post", url="x")).content.decode()
    assert "Configure <bdi>Mail</bdi>" in page


def test_a_secret_appears_nowhere(acme, alice_client, caplog, capsys):
    caplog.set_level(logging.DEBUG)
    fields = {"secret-bearer-token": MARKER, "connect": "1"} | header(0, "X-Key", MARKER)
    pages = [
        alice_client.post(ADD, sheet(**{**fields, "url": "nonsense"})),
        alice_client.post(ADD, sheet(**fields), follow=True),
        alice_client.post(CONFIGURE, sheet(**{**fields, "name": ""})),
        alice_client.post(CONFIGURE, sheet(**{"secret-bearer-token": f"{MARKER} x"})),
        alice_client.get(CONFIGURE),
        alice_client.get("/w/acme/connectors/"),
        alice_client.get("/w/acme/attention.json"),
    ]
    assert values()[("bearer", "token")] == MARKER
    said = "".join(page.content.decode() for page in pages)
    said += caplog.text + "".join(capsys.readouterr())
    said += "".join(f"{each}" for each in AuditEntry.objects.all())
    said += repr(Secret.objects.get(kind="bearer")) + str(secret())
    assert MARKER not in said
