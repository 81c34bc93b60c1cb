"""The operator's outgoing proxy: asked for judged addresses alone, by all that dials."""

from __future__ import annotations

import asyncio
import base64
import logging
import socket

import pytest
from django.apps import apps
from django.core.exceptions import ImproperlyConfigured

from connectors.diagnosis.record import Terms
from connectors.diagnosis.text import as_text
from connectors.diagnosis.values import Fixer, Outcome
from connectors.diagnosis.walk import walk
from connectors.oauth.http import send
from connectors.runtime import close_runtime, is_allowed_address
from connectors.sessions import FaultKind, Limits, proxy
from connectors.sessions.outward import Outward, go_out_by
from connectors.sessions.proxy import proxy_at
from connectors.status import Status
from tests.connectors.session_host import claims, host_of, loopback_only, target_of
from tests.connectors.signing_in import signed_in, status
from tests.servers.authorization import authorization_server
from tests.servers.certificates import Authority
from tests.servers.proxy import connect_proxy
from tests.servers.raw import Reply, raw_server
from workspaces.background import BackgroundLoop

SECRET = "pr0xy/p@ss word"
CREDENTIALS = "us%65r:pr0xy%2Fp%40ss%20word"
ENCODED = base64.b64encode(f"user:{SECRET}".encode()).decode()


@pytest.fixture
def through():
    """A proxy through which this process goes out from now on, as a user with a password."""
    with connect_proxy() as running:
        go_out_by(Outward(proxy_at(running.url.replace("//", f"//{CREDENTIALS}@"))))
        yield running
        go_out_by(Outward())


@pytest.fixture
def server():
    with raw_server() as server:
        server.on("resources/read", {"contents": []})
        yield server


def fault_of(server):
    with host_of(connect_seconds=5) as host:
        return host.connect(target_of(server.url))


def test_a_server_is_reached_through_the_proxy_by_its_address(through, server):
    with host_of() as host:
        target = target_of(f"http://localhost:{server.port}/mcp")
        assert host.read(target)["contents"] == []
    assert server.requests[0].headers["host"] == f"localhost:{server.port}"
    # IPv6 is asked for as well where localhost has such an address.
    assert set(through.asked) <= {f"127.0.0.1:{server.port}", f"[::1]:{server.port}"}
    assert "localhost" not in "".join(through.heads)
    assert f"Proxy-Authorization: Basic {ENCODED}\r\n" in through.heads[0]


def test_the_servers_see_no_credential_of_the_proxy(through, server):
    with host_of() as host:
        host.read(target_of(server.url))
    assert "proxy" not in str([request.headers for request in server.requests]).lower()


def test_tls_is_from_end_to_end_and_under_the_name(through, tmp_path):
    authority, names = Authority(), []
    context = authority.context_for(tmp_path)
    context.sni_callback = lambda _, name, __: names.append(name)
    with raw_server(tls=context) as server, host_of() as host:
        url = f"https://localhost:{server.port}/secret-path"
        headers = (("Authorization", "Bearer secret-token"),)
        bundle = authority.bundle
        assert host.connect(target_of(url, headers=headers, ca_bundle=bundle)).server_name == "raw"
        assert set(names) == {"localhost"}
        # The proxy leads to the same server, whose certificate is not for this address.
        other = target_of(f"https://127.0.0.2:{server.port}/mcp", ca_bundle=bundle)
        fault = host.connect(other)
    assert "certificate is not valid" in fault.message
    assert through.through and b"secret" not in through.through


def test_what_may_not_be_reached_is_not_asked_for(through, monkeypatch):
    found = {"inside.example.com": "10.0.0.1", "metadata.example.com": "169.254.169.254"}

    async def getaddrinfo(_, host, port, **__):
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (found.get(host, host), port))]

    monkeypatch.setattr("uvloop.Loop.getaddrinfo", getaddrinfo)
    with host_of(loopback_only) as host:
        for name in (*found, "192.168.0.1"):
            fault = host.connect(target_of(f"https://{name}/mcp"))
            assert (fault.kind, name) == (FaultKind.BLOCKED, name)
    assert through.asked == []


def test_a_redirect_is_judged_before_the_proxy_hears_of_it(through, server):
    server.intercept = lambda request: Reply(307, {"location": "http://169.254.169.254/"})
    assert fault_of(server).kind is FaultKind.BLOCKED
    assert through.asked == [f"127.0.0.1:{server.port}"]


def test_addresses_out_of_metadata_go_the_same_way(through, server, settings):
    answer = asyncio.run(send("GET", server.url, is_allowed=is_allowed_address))
    assert answer.status == 405
    settings.CONNECTOR_ALLOWED_NETWORKS = []
    fault = asyncio.run(send("GET", server.url, is_allowed=is_allowed_address))
    assert fault.kind is FaultKind.BLOCKED
    assert through.asked == [f"127.0.0.1:{server.port}"]


def test_a_whole_sign_in_goes_through_the_proxy(
    through, transactional_db, queued, acme, alice_client
):
    with authorization_server() as running:
        connector = signed_in(acme, alice_client, running)
        close_runtime()
    assert status(connector) is Status.READY
    # Discovery, registration, the tokens and the resource, each on a socket of its own.
    assert len(through.asked) > 5
    assert {each.partition(":")[0] for each in through.asked} == {"127.0.0.1"}


REFUSALS = [
    (b"HTTP/1.1 403 Forbidden\r\ncontent-length: 9\r\n\r\nforbidden", "refused to connect"),
    (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "does not accept the credentials"),
    (b"HTTP/1.0 503 Service Unavailable\r\n\r\n", "does not get through to the server (HTTP 503)"),
    (b"HTTP/1.1 301 Moved\r\nlocation: http://10.0.0.1/\r\n\r\n", "refused to connect"),
    (b"", "opened no way to the server within"),
    (b"SSH-2.0-OpenSSH_9.2\r\n", "does not answer like one"),
    (b"HTTP/1.1 200 OK\r\nx: " + b"x" * 100_000, "does not answer like one"),
    (b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n{}", "does not answer like one"),
    (b"HTTP/1.1 2000 OK\r\n\r\n", "does not answer like one"),
    (b"HTTP/1.1 \xb2\xb2\xb2 OK\r\n\r\n", "does not answer like one"),
    (b"\r\n\r\n", "does not answer like one"),
]


@pytest.mark.parametrize(("answer", "words"), REFUSALS)
def test_what_the_proxy_does_is_said_as_the_proxys(through, server, monkeypatch, answer, words):
    monkeypatch.setattr(proxy, "PROXY_SECONDS", 0.3)
    through.answer = answer
    fault = fault_of(server)
    assert fault.kind is FaultKind.PROXY
    assert "proxy" in fault.message and words in fault.message
    assert server.connections == 0


def test_a_proxy_that_wants_credentials_and_has_none_says_so(through, server):
    go_out_by(Outward(proxy_at(through.url)))
    through.answer = b"HTTP/1.1 407 No\r\nproxy-authenticate: Basic\r\n\r\n"
    said = "The outgoing proxy wants credentials (HTTP 407). Whoever runs this host can mend it."
    assert fault_of(server).message == said
    assert "authorization" not in through.heads[0].lower()


def test_a_proxy_that_is_away_is_the_reason_and_nothing_goes_round_it(server):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    go_out_by(Outward(proxy_at(f"http://127.0.0.1:{port}")))
    try:
        fault = fault_of(server)
    finally:
        go_out_by(Outward())
    assert fault.kind is FaultKind.PROXY
    assert fault.message.startswith("The outgoing proxy cannot be reached.")
    assert server.connections == 0


def diagnosis_of(server):
    loop = BackgroundLoop("diagnosis")
    terms = Terms(Limits(connect_seconds=3), claims, loopback_only, read_seconds=1)
    try:
        return loop.run(walk("it", target_of(server.url), terms), 20)
    finally:
        loop.close()


def test_a_diagnosis_shows_the_proxy_as_a_step(through, server):
    steps = {each.name: each for each in diagnosis_of(server).steps}
    assert steps["Outgoing proxy"].outcome is Outcome.OK
    assert "through the outgoing proxy" in steps["Connection (TCP)"].words


def test_a_diagnosis_ends_at_a_proxy_that_refuses_and_says_whose_it_is(through, server):
    through.answer = REFUSALS[0][0]
    made = diagnosis_of(server)
    assert made.steps[-1].name == "Outgoing proxy"
    assert made.steps[-1].findings[0].fixer is Fixer.OPERATOR
    assert "CONNECTOR_PROXY" in as_text(made)
    assert not any(each in as_text(made) for each in (SECRET, ENCODED, CREDENTIALS))


def test_its_credentials_are_in_no_log_and_no_text_of_an_object(through, server, caplog):
    caplog.set_level(logging.DEBUG)
    for name in ("httpx2", "httpcore2"):
        logging.getLogger(name).setLevel(logging.DEBUG)
    try:
        with host_of() as host:
            host.read(target_of(server.url))
        through.answer = REFUSALS[1][0]
        said = repr(fault_of(server)) + caplog.text + repr(Outward(proxy_at("http://u:pw0rd@p:1")))
    finally:
        for name in ("httpx2", "httpcore2"):
            logging.getLogger(name).setLevel(logging.WARNING)
    assert caplog.text
    assert not any(each in said for each in (SECRET, ENCODED, CREDENTIALS, "pw0rd"))


@pytest.mark.parametrize(
    "text",
    [
        "proxy:3128",
        "http://proxy",
        "https://pw0rd:pw0rd@proxy:3128",
        "socks5://proxy:1080",
        "http://proxy:3128/pw0rd",
        "http://proxy:pw0rd",
        "http://[pw0rd:3128",
    ],
)
def test_a_setting_that_is_no_proxy_is_refused_at_the_start_without_repeating_it(settings, text):
    settings.CONNECTOR_PROXY = text
    with pytest.raises(ImproperlyConfigured) as refused:
        apps.get_app_config("connectors").ready()
    assert "CONNECTOR_PROXY" in str(refused.value) and "pw0rd" not in str(refused.value)


def test_a_proxys_address_may_be_one_of_ipv6_and_its_password_empty():
    assert (proxy_at("http://[fd00::1]:3128").host, proxy_at("http://[fd00::1]:3128").port) == (
        "fd00::1",
        3128,
    )
    assert proxy_at("http://user@proxy:1/").credential == "Basic dXNlcjo="
