"""`manage.py serve`: one process, a greeting, a demo that counts, and a clean end."""

from __future__ import annotations

import json
import socket
import sqlite3
import time
import urllib.error
import urllib.request
from http.cookiejar import CookieJar

import pytest

from connectors.protocol.identifiers import FACETS
from tests.hosts import Host
from tests.overview.factories import entry
from tests.servers.raw import forever, raw_server

WAIT_SECONDS = 30


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    host = Host(tmp_path_factory.mktemp("var"))
    host.start()
    yield host
    host.stop()


def browser():
    return urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))


def rows_when(opener, url, is_there):
    """The overview's rows, as soon as they are as expected."""
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        rows = json.load(opener.open(url, timeout=10))["rows"]
        if is_there(rows):
            return rows
        assert time.monotonic() < deadline, rows
        time.sleep(0.2)


def test_the_printed_link_signs_in_once_and_leads_to_an_overview_that_counts(host):
    opener = browser()
    page = opener.open(host.link, timeout=10)
    assert page.url == f"http://127.0.0.1:{host.port}/w/demo/"
    data = f"http://127.0.0.1:{host.port}/w/demo/attention.json"
    rows = rows_when(opener, data, lambda rows: {"CRM", "Outbound"} <= {row["app"] for row in rows})
    assert all(row["count"].isdigit() for row in rows if row["state"] == "ok")
    with pytest.raises(urllib.error.HTTPError, match="410"):
        browser().open(host.link, timeout=10)


def test_a_second_start_keeps_the_data_and_ctrl_c_leaves_no_process_within_five_seconds(host):
    host.manage("member", "add", "demo", "dan@example.com", "--role", "member")
    assert host.stop() < 5
    assert host.group_is_gone()
    host.start()
    assert "dan@example.com" in host.manage("member", "list", "demo")
    assert host.stop() < 5
    assert host.group_is_gone()


def test_ctrl_c_waits_for_no_server_that_does_not_answer(tmp_path):
    host = Host(tmp_path, DEMO="0", CONNECTOR_ALLOWED_NETWORKS="127.0.0.0/8")
    with raw_server(capabilities={"resources": {}, "extensions": {FACETS: {}}}) as server:
        server.on("resources/list", {"resources": [entry(f"facet-{n}") for n in range(20)]})
        server.on("resources/read", lambda _: forever())
        host.start()
        try:
            host.manage("workspace", "create", "acme", "--name", "A", "--admin", "a@example.com")
            host.manage("connector", "add", "acme", "slow", server.url, "--name", "Slow")
            host.manage("connector", "connect", "acme", "slow")
            with sqlite3.connect(tmp_path / "db.sqlite3") as database:
                database.execute("UPDATE workspaces_workspace SET watched_until = '2999-01-01'")
            deadline = time.monotonic() + WAIT_SECONDS
            while server.count("resources/read") < 20:
                assert time.monotonic() < deadline
                time.sleep(0.05)
            assert host.stop() < 5
        finally:
            host.stop()
    assert host.group_is_gone()


def test_without_the_demo_there_is_no_workspace_and_no_example_server(tmp_path):
    host = Host(tmp_path, DEMO="0")
    try:
        assert host.start() == f"http://127.0.0.1:{host.port}/"
        assert "demo" not in host.manage("workspace", "list")
        assert not (tmp_path / "examples").exists()
    finally:
        host.stop()


def test_without_the_demo_the_greeting_says_how_a_first_workspace_comes_about(tmp_path):
    host = Host(tmp_path, DEMO="0")
    try:
        origin = host.start().rstrip("/")
        create = host.line(r"manage\.py (workspace create .*)").split()
        link = host.line(r"manage\.py (sign-in-link .*)").split()
        host.manage(*create)
        page = browser().open(host.manage(*link).split()[0], timeout=10)
        assert page.url == f"{origin}/w/acme/"
    finally:
        host.stop()


@pytest.mark.parametrize("port", [None, 99999])
def test_a_port_that_cannot_be_had_is_said_in_words(tmp_path, port):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        other = Host(tmp_path, port=port or taken.getsockname()[1], DEMO="0")
        try:
            with pytest.raises(AssertionError, match=r"cannot listen .* Another port: make run"):
                other.start()
        finally:
            other.stop()


def test_a_second_start_on_the_same_folder_leaves_the_first_one_and_its_demo_alone(tmp_path):
    first = Host(tmp_path)
    second = Host(tmp_path)
    first.start()
    try:
        with pytest.raises(AssertionError, match="The site runs already"):
            second.start()
        assert second.process.wait(10) == 1
        assert "Ready" in first.manage("connector", "check", "demo", "crm")
    finally:
        second.stop()
        first.stop()
