"""What a server may not do: send us elsewhere, flood us, wait us out, or learn and tell secrets."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import logging
import tracemalloc
import zlib
from contextlib import contextmanager

import pytest

from connectors.sessions import FaultKind, Target
from connectors.sessions.guard import is_reachable
from tests.connectors.session_host import host_of, loopback_only, target_of
from tests.servers.raw import LEGACY, MODERN, Error, Reply, event, forever, raw_server, stream

MIB = 1024 * 1024
READ = {"contents": [{"uri": "test://one", "text": '{"count": 3}'}]}
SECRET = "s3cr3t-token-value"


def redirecting(status, location, path="/mcp"):
    reply = Reply(status, {"location": location}, body=b"moved", content_type="text/plain")
    return lambda request: reply if request.path == path else None


@pytest.mark.requirement("D12")
@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_a_redirect_within_the_origin_is_followed_with_everything(status, revision):
    with raw_server(revisions=(revision,), keeps_sessions=True) as server, host_of() as host:
        server.on("resources/read", READ)
        server.intercept = redirecting(status, "/mcp/")
        target = target_of(server.url, headers=(("Authorization", f"Bearer {SECRET}"),))
        assert host.read(target)["contents"] == READ["contents"]
        first, second = server.seen("resources/read")
        assert (first.path, second.path) == ("/mcp", "/mcp/")
        assert first.message == second.message
        assert second.headers["authorization"] == f"Bearer {SECRET}"
        assert server.connections == 1


@pytest.mark.requirement("D12")
@pytest.mark.parametrize("status", [301, 302, 303])
def test_a_redirect_that_loses_the_request_is_not_followed(status):
    with raw_server() as server, host_of() as host:
        server.intercept = redirecting(status, "/mcp/")
        assert host.connect(target_of(server.url)).kind == FaultKind.REDIRECT
        assert {request.path for request in server.requests} == {"/mcp"}


@pytest.mark.requirement("D12")
def test_a_redirect_to_https_is_not_followed_and_says_what_to_correct():
    with raw_server() as server, host_of() as host:
        server.intercept = redirecting(301, "https://localhost/mcp")
        fault = host.connect(target_of(server.url))
    assert fault.kind == FaultKind.REDIRECT
    assert "https://localhost" in fault.message
    assert "correct the connector's address" in fault.message


@pytest.mark.requirement("D12")
def test_a_redirect_to_another_origin_gets_no_request_and_names_it():
    with raw_server() as other, raw_server() as server, host_of() as host:
        server.intercept = redirecting(307, f"{other.url}?token={SECRET}")
        fault = host.connect(target_of(server.url))
        assert fault.kind == FaultKind.REDIRECT
        assert f"127.0.0.1:{other.port}" in fault.message
        assert SECRET not in fault.message
        assert other.requests == []
        assert server.count("initialize") == 0


@pytest.mark.requirement("D12")
@pytest.mark.parametrize(
    "location",
    ["http://169.254.169.254/latest", "http://[fe80::1]/", "http://10.0.0.1/", "//0.0.0.0/mcp"],
)
def test_a_redirect_to_a_blocked_address_is_refused_before_connecting(location):
    with raw_server() as server, host_of() as host:
        server.intercept = redirecting(307, location)
        assert host.connect(target_of(server.url)).kind == FaultKind.BLOCKED


@pytest.mark.requirement("D12")
@pytest.mark.parametrize(
    "location", ["http://[", "ftp://127.0.0.1/", "http://user:pass@127.0.0.1:{port}/mcp/"]
)
def test_a_redirect_to_nowhere_is_a_fault(location):
    with raw_server() as server, host_of() as host:
        server.intercept = redirecting(307, location.format(port=server.port))
        assert host.connect(target_of(server.url)).kind in (FaultKind.REDIRECT, FaultKind.HTTP)
        assert server.count("server/discover") <= 5


def test_redirects_in_circles_end():
    with raw_server() as server, host_of() as host:
        server.intercept = lambda r: Reply(307, {"location": "/mcp"})
        fault = host.connect(target_of(server.url))
        assert (fault.kind, fault.message) == (
            FaultKind.REDIRECT,
            "The server redirects in circles.",
        )
        assert len(server.requests) == 4


@pytest.mark.parametrize(
    "host_name",
    ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1", "0.0.0.0"],
)
def test_an_address_that_is_not_allowed_is_not_dialled_however_it_is_written(host_name):
    def no_loopback(address):
        return address.is_global

    with raw_server() as server, host_of(no_loopback) as host:
        fault = host.connect(target_of(f"http://{host_name}:{server.port}/mcp"))
        assert fault.kind == FaultKind.BLOCKED
        assert server.connections == 0


@pytest.mark.parametrize(
    ("text", "is_public"),
    [
        ("8.8.8.8", True),
        ("2606:4700::1111", True),
        ("10.0.0.1", False),
        ("fe80::1%eth0", False),
        ("::ffff:10.0.0.1", False),
        ("::ffff:8.8.8.8", True),
        ("64:ff9b::a9fe:a9fe", False),
        ("64:ff9b::808:808", True),
        ("2002:7f00:1::1", False),
    ],
)
def test_an_address_is_judged_by_where_its_packets_may_end_up(text, is_public):
    assert is_reachable(text, lambda address: address.is_global) is is_public


def test_a_name_without_an_address_and_an_address_without_a_name_are_faults():
    with host_of() as host:
        assert host.connect(target_of("http://nowhere.invalid/mcp")).kind == FaultKind.UNREACHABLE
        for url in ("", "mcp", "ftp://127.0.0.1/", "http://", "http://127.0.0.1:x/"):
            assert (url, host.connect(target_of(url)).kind) == (url, FaultKind.PROTOCOL)


@contextmanager
def memory_below(limit):
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < limit
    finally:
        tracemalloc.stop()


def endless_json():
    async def body():
        yield b'{"padding": "'
        while True:
            yield b"x" * 65536

    return Reply(body=body())


BOMB = b"x" * (64 * MIB)
PACKED_JSON = gzip.compress(BOMB)
PACKED_EVENT = zlib.compress(b"data: " + BOMB + b"\n\n")
del BOMB


def bomb():
    return Reply(200, {"content-encoding": "gzip"}, body=PACKED_JSON)


def endless_stream():
    notice = event(b'{"method": "notifications/message", "params": {"data": "%s"}}' % (b"x" * 9000))

    async def body():
        while True:
            yield notice

    return Reply(body=body(), content_type="text/event-stream")


def endless_event():
    async def body():
        yield b"data: "
        while True:
            yield b"x" * 65536

    return Reply(body=body(), content_type="text/event-stream")


def packed_stream():
    reply = stream(PACKED_EVENT)
    reply.headers["content-encoding"] = "deflate"
    return reply


@pytest.mark.requirement("D13")
@pytest.mark.parametrize(
    "flood", [endless_json, bomb, endless_stream, endless_event, packed_stream]
)
def test_a_flood_ends_at_the_cap_and_other_calls_go_on(flood):
    with raw_server() as server, host_of(max_body_bytes=8 * MIB) as host:
        server.on("resources/read", READ)
        server.on("tools/list", lambda _: flood())
        target = target_of(server.url)
        host.connect(target)
        with memory_below(16 * MIB):
            fault = host.entries(target, "tools/list", seconds=10)
        assert (fault.kind, fault.message) == (
            FaultKind.TOO_LARGE,
            "The server's answer is larger than 8 MiB.",
        )
        assert host.read(target)["contents"] == READ["contents"]
        assert server.count("server/discover") == 1


@pytest.mark.requirement("D13")
@pytest.mark.parametrize("content_type", ["application/json", "text/event-stream"])
def test_a_drip_ends_at_the_overall_deadline(content_type):
    async def body():
        while True:
            yield b" "
            await asyncio.sleep(0.02)

    with raw_server() as server, host_of() as host:
        server.on("resources/read", lambda _: Reply(body=body(), content_type=content_type))
        target = target_of(server.url)
        assert host.read(target, seconds=0.3).kind == FaultKind.TIMEOUT
        server.on("resources/read", READ)
        assert host.read(target)["contents"] == READ["contents"]


def test_a_compressed_answer_is_read():
    def packed(request):
        body = json.dumps({"jsonrpc": "2.0", "id": request.message["id"], "result": READ})
        return Reply(200, {"content-encoding": "gzip"}, body=gzip.compress(body.encode()))

    with raw_server() as server, host_of() as host:
        server.on("resources/read", packed)
        assert host.read(target_of(server.url)) == READ


def test_a_server_cannot_flood_its_own_description():
    with raw_server(capabilities={"x": "y" * (2 * MIB)}) as server, host_of() as host:
        assert host.connect(target_of(server.url)).kind == FaultKind.TOO_LARGE


@pytest.mark.requirement("F-134")
def test_many_calls_to_a_slow_server_go_out_together():
    async def slowly(_):
        await asyncio.sleep(0.2)
        return READ

    with raw_server() as server, host_of() as host:
        server.on("resources/read", slowly)
        target = target_of(server.url)

        async def ten():
            read = host.sessions.read_resource
            async with asyncio.timeout(1):
                return await asyncio.gather(
                    *(read(target, f"test://{number}", 5) for number in range(10))
                )

        assert len(host.run(ten())) == 10


def secretive(url):
    basic = base64.b64encode(b"user:" + SECRET.encode()).decode()
    headers = (("Authorization", f"Bearer {SECRET}"), ("X-Api-Key", basic))
    return target_of(f"{url}?api_key={SECRET}-in-the-address", headers=headers)


def echo(request):
    said = f"\x1b[31mbad\r\n credential {request.headers} {request.path}\u202e" + "z" * 5000
    return Error(-32000, said, data={"sent": request.headers}, status=400)


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_a_server_that_echoes_our_secrets_cannot_make_us_show_them(revision, caplog):
    caplog.set_level(logging.DEBUG)
    with raw_server(revisions=(revision,)) as server, host_of() as host:
        server.on("resources/read", echo)
        target = secretive(server.url)
        fault = host.read(target)
        assert fault.kind == FaultKind.REMOTE
        assert fault.message.startswith("[31mbad credential")
        assert len(fault.message) == 200
        assert fault.message.isprintable()
        shown = [repr(fault), str(fault.data), repr(target), caplog.text, repr(host.sessions)]
        assert not [text for text in shown if SECRET in text]
        assert not [text for text in shown if target.headers[1][1] in text]


def test_a_challenge_and_a_name_that_echo_our_secrets_are_cleaned_too():
    with raw_server() as server, host_of() as host:
        server.on(
            "resources/read", lambda _: Reply(401, {"www-authenticate": f"Bearer x={SECRET}"})
        )
        assert host.read(secretive(server.url)).challenge == "Bearer x=[secret]"


def test_a_header_that_http_cannot_carry_is_a_fault_without_its_value():
    with raw_server() as server, host_of() as host:
        target = target_of(server.url, headers=(("X-Key", f"{SECRET}\r\nHost: evil"),))
        fault = host.connect(target)
        assert fault.kind == FaultKind.PROTOCOL
        assert SECRET not in repr(fault)
        assert server.requests == []


def test_a_connector_s_headers_do_not_replace_what_the_protocol_needs():
    headers = (("Host", "evil"), ("Content-Length", "1"), ("Mcp-Session-Id", "x"), ("X-Own", "é"))
    with raw_server() as server, host_of() as host:
        host.connect(target_of(server.url, headers=headers))
        sent = server.requests[0].headers
    assert sent["host"] == f"127.0.0.1:{server.port}"
    assert "mcp-session-id" not in sent
    assert sent["x-own"].encode("latin-1").decode() == "é"


def test_a_name_and_password_in_the_address_are_sent_as_such():
    with raw_server() as server, host_of() as host:
        host.connect(target_of(server.url.replace("//", "//ann:pass-word@")))
        expected = base64.b64encode(b"ann:pass-word").decode()
        assert server.requests[0].headers["authorization"] == f"Basic {expected}"


def test_a_cookie_of_a_load_balancer_is_sent_back_to_its_server_alone():
    with raw_server() as server, host_of() as host:
        server.on("resources/read", READ)
        sticky = Reply(307, {"location": "/mcp/", "set-cookie": "node=7; Path=/; HttpOnly"})
        server.intercept = lambda r: sticky if r.path == "/mcp" else None
        host.read(target_of(server.url))
        assert server.requests[-1].headers["cookie"] == "node=7"
        server.intercept = None
        host.read(target_of(server.url))
        assert "cookie" not in server.requests[-1].headers


def test_no_proxy_of_the_environment_is_used(monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with raw_server() as server, host_of() as host:
        assert host.connect(target_of(server.url)).revision == MODERN


def test_a_silent_address_is_a_timeout():
    with raw_server() as server, host_of(loopback_only, connect_seconds=0.3) as host:
        server.intercept = lambda _: forever()
        assert host.connect(target_of(server.url)).kind == FaultKind.TIMEOUT


def test_a_target_shows_no_secret():
    target = Target(1, 2, f"https://x/{SECRET}", headers=(("A", SECRET),))
    assert SECRET not in repr(target)
    assert target.key == (1, 2)
