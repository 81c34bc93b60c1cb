"""Servers as child processes."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from connectors.sessions import FaultKind, Listed
from tests.connectors.session_host import host_of, target_of

SERVER = Path(__file__).parents[1] / "servers" / "stdio_server.py"


def child(*arguments, **fields):
    return target_of("", command=(sys.executable, str(SERVER), *arguments), **fields)


def text_of(result):
    return result["contents"][0]["text"]


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize(("era", "revision"), [("2025", "2025-11-25"), ("2026", "2026-07-28")])
def test_a_child_is_spoken_to_in_either_era_and_ends_with_its_connection(era, revision):
    with host_of() as host:
        target = child(era)
        connected = host.connect(target)
        assert connected.revision == revision
        assert connected.capabilities["extensions"] == {"ai.nimblebrain/facets": None}
        pid = int(text_of(host.read(target)))
        assert is_alive(pid)
    assert not is_alive(pid)


def test_a_child_gets_what_it_needs_of_the_environment_and_what_it_was_given(monkeypatch):
    monkeypatch.setenv("SECRETS_KEYS", "not for children")
    with host_of() as host:
        target = child(environment=(("API_TOKEN", "for-this-child"),))
        environment = json.loads(text_of(host.read(target, "env://")))
    assert environment["API_TOKEN"] == "for-this-child"
    assert set(environment) <= {"API_TOKEN", "HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"} | {
        name for name in environment if name.startswith(("LC_", "__"))
    }


@pytest.mark.requirement("F-035")
def test_a_listing_of_a_child_loses_its_broken_entry_alone():
    with host_of() as host:
        assert host.entries(child()) == Listed([{"uri": "b:"}], 1, unreadable=1)


def test_a_dead_child_is_started_again():
    with host_of() as host:
        target = child()
        first = text_of(host.read(target))
        assert host.read(target, "die://").kind == FaultKind.CLOSED
        assert text_of(host.read(target)) != first


def test_a_call_that_hangs_is_given_up_and_the_child_serves_others():
    with host_of() as host:
        target = child()
        pid = text_of(host.read(target))
        assert host.read(target, "hang://", seconds=0.2).kind == FaultKind.TIMEOUT
        assert text_of(host.read(target)) == pid


@pytest.mark.requirement("D13")
def test_a_child_that_floods_is_ended():
    with host_of(max_body_bytes=1024 * 1024) as host:
        target = child()
        pid = int(text_of(host.read(target)))
        assert host.read(target, "flood://").kind == FaultKind.CLOSED
        host.run(host.sessions.drop(target.connector_id))
        assert not is_alive(pid)


@pytest.mark.parametrize("command", [("/no/such/program",), (), (sys.executable, "-c", "pass")])
def test_a_program_that_cannot_serve_is_a_fault(command):
    with host_of() as host:
        fault = host.connect(target_of("", command=command))
        assert fault.kind in (FaultKind.UNREACHABLE, FaultKind.CLOSED)


def test_a_child_that_will_not_leave_is_killed():
    stubborn = (
        "import signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print('up', flush=True)\nwhile True: time.sleep(1)"
    )
    with host_of(connect_seconds=0.4, close_seconds=0.2) as host:
        target = target_of("", command=(sys.executable, "-c", stubborn))
        assert host.connect(target).kind == FaultKind.TIMEOUT

        async def gone():
            async with asyncio.timeout(5):
                await host.sessions.drop(target.connector_id)

        host.run(gone())
