"""The demo's servers start where they were, say what is missing, and leave nothing running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import pytest

from examples import catalog
from examples.catalog import ROOT, Example, ExampleServers

CRM = catalog.EXAMPLES[0]


def is_there(url: str) -> bool:
    try:
        httpx2.get(url, trust_env=False, timeout=2)
    except httpx2.TransportError:
        return False
    return True


def test_a_second_start_keeps_the_addresses(tmp_path: Path) -> None:
    with ExampleServers(tmp_path, [CRM]) as servers:
        first = servers.start().urls
    assert not is_there(first["crm"])
    with ExampleServers(tmp_path, [CRM]) as servers:
        assert servers.start().urls == first
        assert is_there(first["crm"])


def test_a_taken_port_costs_the_address_but_not_the_server(tmp_path: Path) -> None:
    with ExampleServers(tmp_path, [CRM]) as first, ExampleServers(tmp_path, [CRM]) as second:
        urls = first.start().urls["crm"], second.start().urls["crm"]
        assert urls[0] != urls[1]
        assert is_there(urls[0]) and is_there(urls[1])


@pytest.mark.parametrize("junk", ["", "[]", '{"crm": "x"}', '{"crm": 99999999}', '{"crm": true}'])
def test_junk_among_the_remembered_ports_is_no_obstacle(tmp_path: Path, junk: str) -> None:
    (tmp_path / "ports.json").write_text(junk)
    with ExampleServers(tmp_path, [CRM]) as servers:
        assert list(servers.start().urls) == ["crm"]


def test_a_server_that_fails_is_reported_and_the_others_start(tmp_path: Path) -> None:
    broken = Example("broken", "Broken", lambda port: [sys.executable, "-c", "import nope"], ())
    with ExampleServers(tmp_path, [broken, CRM]) as servers:
        started = servers.start()
    assert list(started.urls) == ["crm"]
    assert started.skipped == ["Broken did not start: ModuleNotFoundError: No module named 'nope'"]


def test_without_node_the_typescript_example_is_left_out_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    typescript = [example for example in catalog.EXAMPLES if example.needs_node]
    with ExampleServers(tmp_path, typescript) as servers:
        started = servers.start()
    assert started.urls == {}
    assert started.skipped == [
        "Acme is left out: Node.js is not installed (version 20 or later runs it)."
    ]


def test_a_failed_installation_is_left_out_with_what_npm_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, body in (("node", "exit 0"), ("npm", "echo 'npm error no network' >&2; exit 1")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "package-lock.json").write_text("{}")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(catalog, "TYPESCRIPT", tmp_path)
    assert catalog.install_typescript() == "npm ci failed: npm error no network"


def test_a_server_that_will_not_go_is_killed_within_two_seconds(tmp_path: Path) -> None:
    deaf = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "print('listening on http://127.0.0.1:1/mcp', flush=True); time.sleep(60)"
    )
    servers = ExampleServers(
        tmp_path, [Example("deaf", "Deaf", lambda port: [sys.executable, "-c", deaf], ())]
    )
    servers.start()
    (process,) = servers.processes.values()
    begun = time.monotonic()
    servers.stop()
    assert time.monotonic() - begun < 2
    assert process.returncode == -signal.SIGKILL


def test_no_server_outlives_a_killed_parent(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, time; from pathlib import Path; from examples.catalog import *;"
            "servers = ExampleServers(Path(sys.argv[1])); print(*servers.start().urls.values(),"
            "flush=True); time.sleep(60)",
            str(tmp_path),
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    with parent.stdout:
        urls = parent.stdout.readline().split()
    assert len(urls) >= 3 and all(map(is_there, urls))
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait(5)
    deadline = time.monotonic() + 5
    while any(map(is_there, urls)):
        assert time.monotonic() < deadline


def test_an_example_ends_without_a_traceback_when_told(tmp_path: Path) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        with ExampleServers(tmp_path, [CRM]) as servers:
            servers.start()
            servers.processes["crm"].send_signal(number)
            assert servers.processes["crm"].wait(2) == 0
        assert (tmp_path / "crm.log").read_text().count("\n") == 1
