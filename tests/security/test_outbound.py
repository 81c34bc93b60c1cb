"""Where a connector may lead: judged by the address that is dialled, however it is written."""

from __future__ import annotations

import asyncio
import socket

import httpcore2
import pytest

from connectors.inputs import problem_of_address
from connectors.oauth.http import send
from connectors.runtime import is_allowed_address
from connectors.sessions import Fault, FaultKind
from connectors.sessions.guard import BlockedAddress, GuardedBackend, is_reachable
from tests.connectors.session_host import host_of, target_of
from tests.servers.raw import Reply, raw_server

METADATA = [
    "169.254.169.254",  # Amazon, Google, Azure, Oracle and most others
    "fd00:ec2::254",  # Amazon
    "fd20:ce::254",  # Google
    "100.100.100.200",  # Alibaba
    "168.63.129.16",  # Azure's own, which looks public
    "192.0.0.192",  # Oracle
]
TRANSLATED = [
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:0:127.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::a9fe:a9fe",
    "2002:7f00:1::1",
    "2002:a9fe:a9fe::",
    "2001:0:7f00:1::1",  # Teredo
    "::5efe:7f00:1",
]
OTHERS = [
    "0.0.0.0",
    "::",
    "::1",
    "10.0.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "127.255.255.254",
    "192.88.99.1",
    "198.18.0.1",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "fe80::1",
    "fe80::1%eth0",
    "fe80::1%25eth0",
    "fec0::1",
    "fc00::1",
    "ff02::1",
    "100::1",
    "200::1",
    "2001:db8::1",
    "3fff::1",
    "5f00::1",
    "8000::1",
]
PUBLIC = ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1"]


@pytest.fixture(autouse=True)
def _no_network_is_allowed(settings):
    settings.CONNECTOR_ALLOWED_NETWORKS = []


@pytest.mark.parametrize("text", [*METADATA, *TRANSLATED, *OTHERS])
def test_what_is_not_public_is_out_of_reach_in_every_spelling(text):
    assert not is_reachable(text, is_allowed_address)


@pytest.mark.parametrize("text", PUBLIC)
def test_what_is_public_is_in_reach(text):
    assert is_reachable(text, is_allowed_address)


SPELLINGS = [
    "127.0.0.1",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "017700000001",
    "127.1",
    "0",
    "[::]",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "１２７.0.0.1",  # noqa: RUF001  Full-width digits, which IDNA makes plain ones.
]


@pytest.mark.parametrize("host", SPELLINGS)
def test_this_machine_is_not_dialled_for_a_connector(host):
    with raw_server() as server, host_of(is_allowed_address) as sessions:
        fault = sessions.connect(target_of(f"http://{host}:{server.port}/mcp"))
        assert isinstance(fault, Fault)
        assert server.connections == 0


@pytest.mark.parametrize("host", SPELLINGS)
def test_this_machine_is_not_dialled_for_an_address_out_of_metadata(host):
    """What a server names as its authorization server, or that one as its token endpoint."""
    with raw_server() as server:
        fault = asyncio.run(
            send("GET", f"http://{host}:{server.port}/", is_allowed=is_allowed_address)
        )
        assert isinstance(fault, Fault)
        assert server.connections == 0


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("place", ["http://169.254.169.254/latest/", "http://[::ffff:a9fe:a9fe]/"])
def test_no_redirect_leads_to_a_metadata_address(settings, status, place):
    with raw_server() as server, host_of(lambda address: address.is_loopback) as sessions:
        server.intercept = lambda request: Reply(status, {"location": place})
        assert sessions.connect(target_of(server.url)).kind == FaultKind.BLOCKED


def answering(*answers):
    """A resolver that says something else each time it is asked."""
    left = list(answers)

    async def getaddrinfo(host, port, **_):
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (text, port)) for text in left.pop(0)]

    return getaddrinfo


def dial(monkeypatch, *answers):
    """Connect as often as there are answers; which addresses were dialled."""
    dialled = []

    async def connect_tcp(self, host, *_, **__):
        dialled.append(host)
        raise httpcore2.ConnectError

    monkeypatch.setattr(httpcore2.AnyIOBackend, "connect_tcp", connect_tcp)

    async def go():
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", answering(*answers))
        backend, kinds = GuardedBackend(is_allowed_address), []
        for _ in answers:
            with pytest.raises(httpcore2.ConnectError) as raised:
                await backend.connect_tcp("mail.example.com", 443, timeout=2)
            kinds.append(type(raised.value))
        return kinds

    return asyncio.run(go()), dialled


def test_a_name_that_changes_its_address_is_judged_at_each_dialling(monkeypatch):
    kinds, dialled = dial(monkeypatch, ["8.8.8.8"], ["127.0.0.1"])
    assert dialled == ["8.8.8.8"]
    assert kinds == [httpcore2.ConnectError, BlockedAddress]


def test_of_a_names_addresses_only_the_public_ones_are_dialled(monkeypatch):
    _, dialled = dial(monkeypatch, ["169.254.169.254", "8.8.8.8", "::1", "::127.0.0.1"])
    assert dialled == ["8.8.8.8"]


@pytest.mark.parametrize("host", ["127.1", "2130706433", "0x7f.1", "[::1]", "[::ffff:127.0.0.1]"])
def test_the_form_says_at_once_that_a_literal_address_is_none_to_reach(host):
    assert "not a public address" in problem_of_address(f"http://{host}/", is_allowed_address)
