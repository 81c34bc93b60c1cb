"""What people and agents hand in: files, JSON, names of programs, patterns."""

from __future__ import annotations

import gzip
import json
import time

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from connectors.declared import declared_by
from connectors.models import Connector
from connectors.protocol.server_json import Refusal, parse_server_json
from connectors.queries import target_to
from tests.connectors.outside import Outside, site_on_a_port, token_for
from tests.connectors.records import sheet

ADD = "/w/acme/connectors/add/"
DEEP = ["[" * 100_000, '{"a":' * 20_000 + "1" + "}" * 20_000, "[" * 60_000 + "]" * 60_000]
PROGRAMS = ["../../bin/sh", "/bin/sh", "sh -c id", "files/../sh", "files\x00", "FILES", "__class__"]


def server_json(**remote):
    known = {"type": "streamable-http", "url": "https://mail.example.com/mcp"}
    return {"name": "com.example/mail", "remotes": [{**known, **remote}]}


# --- Programs ----------------------------------------------------------------------------------


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("listed", [{}, {"files": ["mcp-files", "/srv"]}])
def test_no_program_runs_that_the_operator_does_not_list(
    acme, alice_client, settings, listed, program
):
    settings.STDIO_SERVERS = listed
    sent = sheet(url="", transport="stdio", command=program, connect="1")
    assert alice_client.post(ADD, sent).status_code == 200
    assert not Connector.objects.exists()


def test_a_program_is_looked_up_by_its_name_when_it_runs(acme, settings):
    """Whatever is stored: a name that is not listed any more runs nothing."""
    settings.STDIO_SERVERS = {"files": ["mcp-files"]}
    connector = Connector(workspace=acme, slug="x", name="X", transport="stdio", command="/bin/sh")
    connector.save()
    assert target_to(connector).command == ()


# --- server.json -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "javascript:alert(1)",
        "gopher://x.example/",
        "https://user:pass@mail.example.com/",
        "https://mail.example.com/\r\nX-Evil: 1",
        "https://mail.example.com/#x",
        "//mail.example.com/mcp",
        "https:///mcp",
        "unix:/var/run/docker.sock",
    ],
)
def test_a_file_leads_to_no_other_kind_of_address(acme, alice_client, url):
    """Either it is refused when it is read, or by the form that it fills in."""
    found = parse_server_json(server_json(url=url))
    if not isinstance(found, Refusal):
        sent = sheet(url=found.url, server_json=json.dumps(server_json(url=url)))
        assert alice_client.post(ADD, sent).status_code == 200
    assert not Connector.objects.exists()


@pytest.mark.parametrize(
    "header",
    [
        {"name": "X-A\r\nX-Evil", "value": "1"},
        {"name": "Host", "value": "evil.example"},
        {"name": "Mcp-Session-Id", "value": "1"},
        {"name": "Transfer-Encoding", "value": "chunked"},
        {"name": "X-A", "value": "1\r\nX-Evil: 1"},
        {"name": "X-A", "default": "1\nX-Evil: 1"},
        {"name": "X-\u202e", "value": "1"},
    ],
)
def test_a_file_adds_no_header_of_the_connections_own_and_no_second_one(header):
    found = parse_server_json(server_json(headers=[header]))
    assert not isinstance(found, Refusal)
    assert declared_by(found) == []


@pytest.mark.parametrize(
    "route", ["../../admin", "/admin", "//evil.example", "a/../b", "a%2f..", "."]
)
def test_a_placement_leads_out_of_nowhere(route):
    body = server_json() | {
        "_meta": {"ai.nimblebrain/host": {"placements": [{"slot": "main", "route": route}]}}
    }
    found = parse_server_json(body)
    assert not isinstance(found, Refusal)
    assert [each.route for each in found.placements if each.route] == []


# --- JSON --------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", DEEP)
def test_a_json_bomb_in_a_form_is_no_json(acme, alice_client, text):
    pasted = alice_client.post(ADD, {"import": "1", "import-text": text})
    file = SimpleUploadedFile("server.json", text.encode())
    uploaded = alice_client.post(ADD, {"import": "1", "import-file": file})
    hidden = alice_client.post(ADD, sheet(server_json=text, url=""))
    assert [each.status_code for each in (pasted, uploaded, hidden)] == [200, 200, 200]
    assert "This is not JSON" in pasted.content.decode()
    assert not Connector.objects.exists()


def test_an_archive_is_not_unpacked(acme, alice_client):
    bomb = gzip.compress(b" " * 10_000_000)
    file = SimpleUploadedFile("server.json", bomb, content_type="application/gzip")
    answer = alice_client.post(ADD, {"import": "1", "import-file": file})
    assert "This is not JSON" in answer.content.decode()


@pytest.fixture
def agent(acme, alice, transactional_db):
    with site_on_a_port() as site:
        yield Outside(site, "acme", token_for(acme, alice))


@pytest.mark.parametrize("text", DEEP)
def test_a_json_bomb_at_the_endpoint_is_refused_in_no_time(agent, text):
    started = time.perf_counter()
    answer = agent.post(body=text.encode())
    assert 400 <= answer.status_code < 500
    assert "Traceback" not in answer.text
    assert time.perf_counter() - started < 2


def test_a_compressed_body_at_the_endpoint_is_not_unpacked(agent):
    bomb = gzip.compress(b" " * 50_000_000)
    answer = agent.post(body=bomb, content_encoding="gzip")
    assert 400 <= answer.status_code < 500
