"""Lost sessions, dropped connections, restarts: what is repaired, what is repeated, what is not."""

from __future__ import annotations

import asyncio
import threading

import pytest

from connectors.sessions import Fault, FaultKind
from tests.connectors.session_host import host_of, sessionful, target_of
from tests.servers.raw import (
    LEGACY,
    MODERN,
    Drop,
    Error,
    Reply,
    event,
    forever,
    raw_server,
    stream,
)

READ = {"contents": [{"uri": "test://one", "text": '{"count": 3}'}]}
LOST = [
    Error(-32001, "Session not found", status=404),
    Error(-32600, "Session not found", status=404),
    Error(-32000, "Bad Request: No valid session ID provided", status=400),
    Error(-32000, "Bad Request: Server not initialized", status=400),
    Error(-32600, "Session has expired"),
    Reply(404, body=b"gone", content_type="text/plain"),
    Reply(410),
]


def forgetful(server, calls=3, reply=LOST[0]):
    """The server forgets a session after so many good calls (D1)."""
    used: dict[str, int] = {}

    def intercept(request):
        session = request.headers.get("mcp-session-id")
        if session is None or request.verb == "DELETE" or "id" not in request.message:
            return None
        used[session] = used.get(session, 0) + 1
        return reply if used[session] > calls else None

    server.intercept = intercept


@pytest.mark.requirement("D1")
@pytest.mark.parametrize("reply", LOST, ids=str)
def test_a_lost_session_is_opened_anew_and_the_read_repeated(reply):
    with sessionful() as server, host_of() as host:
        server.on("resources/read", READ)
        forgetful(server, reply=reply)
        target = target_of(server.url)
        assert [host.read(target) for _ in range(5)] == [READ] * 5
        assert server.count("initialize") == 2
        assert server.seen("resources/read")[-1].headers["mcp-session-id"] == "session-2"


@pytest.mark.requirement("D1")
def test_a_second_loss_within_a_minute_is_a_fault_and_a_later_one_is_repaired():
    with sessionful() as server, host_of() as host:
        server.on("resources/read", READ)
        forgetful(server, calls=1)
        target = target_of(server.url)
        assert host.read(target) == READ
        assert host.read(target) == READ
        fault = host.read(target)
        assert fault.kind == FaultKind.SESSION_LOST
        assert "again" in fault.message
        host.clock.now += 61
        assert host.read(target) == READ
        assert host.read(target) == READ


@pytest.mark.requirement("D1")
def test_callers_that_lose_a_session_together_get_one_new_session():
    with sessionful() as server, host_of() as host:
        server.on("resources/read", READ)
        target = target_of(server.url)
        host.read(target)
        server.sessions.clear()

        async def five():
            read = host.sessions.read_resource
            return await asyncio.gather(*(read(target, "test://one", 5) for _ in range(5)))

        assert host.run(five()) == [READ] * 5
        assert server.count("initialize") == 2


@pytest.mark.requirement("D1")
def test_a_tool_call_is_repeated_only_when_it_may_be():
    with sessionful() as server, host_of() as host:
        server.on("tools/call", {"content": []})
        target = target_of(server.url)
        host.call(target)
        server.sessions.clear()
        fault = host.call(target)
        assert fault.kind == FaultKind.SESSION_LOST
        assert "not made again" in fault.message
        assert server.count("tools/call") == 2
        assert host.call(target) == {"content": []}
        host.clock.now += 61
        server.sessions.clear()
        assert host.call(target, is_repeatable=True) == {"content": []}


@pytest.mark.requirement("D1")
@pytest.mark.parametrize(
    "error",
    [
        Error(-32001, "Request timed out"),
        Error(-32000, "Database is down"),
        Error(-32600, "Your login session expired", status=500),
        Error(-32601, "Method not found", status=404),
        Error(-32602, "No such resource", status=400),
    ],
    ids=str,
)
def test_an_ordinary_error_is_no_lost_session(error):
    with sessionful() as server, host_of() as host:
        server.on("resources/read", lambda _: error)
        fault = host.read(target_of(server.url))
        assert (fault.kind, fault.code) == (FaultKind.REMOTE, error.code)
        assert fault.message == error.message
        assert server.count("initialize") == 1
        assert server.count("resources/read") == 1


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_a_restarted_server_is_found_again(revision):
    with raw_server(revisions=(revision,), keeps_sessions=True) as server, host_of() as host:
        server.on("resources/read", READ)
        target = target_of(server.url)
        host.read(target)
        server.sessions.clear()
        server.intercept = _raise_drop
        assert host.read(target).kind == FaultKind.CLOSED
        server.intercept = None
        assert host.read(target)["contents"] == READ["contents"]


def _raise_drop(_):
    raise Drop


@pytest.mark.requirement("D2")
@pytest.mark.parametrize(
    "reply",
    [
        Reply(405),
        Reply(404),
        Reply(406),
        Reply(200, body=b"hello", content_type="text/plain"),
        None,
    ],
)
def test_what_a_get_would_answer_never_matters(reply):
    with sessionful() as server, host_of() as host:
        server.on("resources/read", READ)
        server.intercept = lambda r: (reply or stream()) if r.verb == "GET" else None
        target = target_of(server.url)
        assert host.connect(target).revision == LEGACY
        assert host.read(target) == READ
        assert server.count("GET") <= 3


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply(401, {"www-authenticate": 'Bearer error="x"'}), FaultKind.UNAUTHORIZED),
        (Reply(403), FaultKind.FORBIDDEN),
        (Reply(429, {"retry-after": "7"}), FaultKind.RATE_LIMITED),
        (Reply(500), FaultKind.HTTP),
        (Reply(503), FaultKind.HTTP),
        (Reply(200, body=b"{"), FaultKind.PROTOCOL),
        (Reply(200, body=b"null"), FaultKind.PROTOCOL),
        (Reply(200, body=b"[" * 100_000), FaultKind.PROTOCOL),
        (Reply(200, body=b'{"jsonrpc":"2.0","id":99,"result":{}}'), FaultKind.PROTOCOL),
        (Reply(200, body=b"<html>", content_type="text/html"), FaultKind.PROTOCOL),
        (Reply(200, body=b"hi", content_type=None), FaultKind.PROTOCOL),
        (Reply(202), FaultKind.PROTOCOL),
        (Reply(204, content_type=None), FaultKind.PROTOCOL),
        (Reply(200, {"content-length": "50"}, body=b"{"), FaultKind.TIMEOUT),
        (Reply(200, {"content-encoding": "br"}, body=b"x"), FaultKind.PROTOCOL),
        (Reply(200, {"content-encoding": "gzip"}, body=b"no gzip"), FaultKind.PROTOCOL),
        (stream(), FaultKind.CLOSED),
        (stream(event(b"{")), FaultKind.PROTOCOL),
    ],
)
def test_whatever_a_server_answers_is_a_fault_and_the_next_read_works(reply, kind):
    with raw_server() as server, host_of() as host:
        server.on("resources/read", READ)
        target = target_of(server.url)
        host.connect(target)
        server.intercept = lambda _: reply
        fault = host.read(target, seconds=0.4)
        assert isinstance(fault, Fault)
        assert fault.kind == kind
        server.intercept = None
        assert host.read(target)["contents"] == READ["contents"]
        assert server.count("server/discover") == 1


def test_what_a_refusal_says_to_machines_is_kept():
    challenge = 'Bearer error="insufficient_scope", scope="a b"'
    with raw_server() as server, host_of() as host:
        headers = {"www-authenticate": challenge, "retry-after": "7"}
        server.on("resources/read", lambda _: Reply(403, headers))
        fault = host.read(target_of(server.url))
    assert (fault.http_status, fault.challenge) == (403, challenge)
    assert fault.retry_after_seconds == 7


def test_a_dropped_connection_is_tried_once_more_where_that_is_safe():
    drops = []

    def drop_once(request):
        if "resources" in request.method or "tools" in request.method:
            drops.append(request)
            if len(drops) == 1:
                raise Drop
        return None

    with raw_server() as server, host_of() as host:
        server.on("resources/read", READ)
        server.on("tools/call", {"content": []})
        target = target_of(server.url)
        host.connect(target)
        server.intercept = drop_once
        assert host.read(target)["contents"] == READ["contents"]
        drops.clear()
        assert host.call(target).kind == FaultKind.CLOSED
        assert len(drops) == 1


def test_a_refused_connection_is_a_fault_for_all_who_wait_and_tried_afresh_by_the_next():
    with raw_server() as server, host_of() as host:
        server.on("resources/read", READ)
        release = threading.Event()

        async def refuse_later(_):
            await asyncio.to_thread(release.wait, 5)
            return Reply(503)

        server.intercept = refuse_later
        target = target_of(server.url)

        async def three():
            read = host.sessions.read_resource
            calls = [asyncio.create_task(read(target, "test://one", 5)) for _ in range(3)]
            while not server.requests:
                await asyncio.sleep(0.005)
            release.set()
            return await asyncio.gather(*calls)

        assert {fault.kind for fault in host.run(three())} == {FaultKind.HTTP}
        assert server.count("server/discover") == 1
        server.intercept = None
        assert host.read(target)["contents"] == READ["contents"]
        assert server.count("server/discover") == 2


def test_nobody_listening_is_unreachable():
    with raw_server() as server:
        url = server.url
    with host_of() as host:
        fault = host.connect(target_of(url))
        assert (fault.kind, fault.message) == (
            FaultKind.UNREACHABLE,
            "The server refuses connections.",
        )


@pytest.mark.requirement("F-130", "F-131", "F-132")
@pytest.mark.parametrize("slow", ["server/discover", "resources/read", "resources/list"])
def test_a_deadline_covers_connecting_and_answering(slow):
    with raw_server() as server, host_of() as host:
        server.on("resources/read", READ)
        server.on("resources/list", {"resources": []})
        server.intercept = lambda r: forever() if r.method == slow else None
        target = target_of(server.url)
        call = host.entries if slow == "resources/list" else host.read
        fault = call(target, seconds=0.2)
        assert (fault.kind, fault.message) == (
            FaultKind.TIMEOUT,
            "The server did not answer within 0.2 s.",
        )


@pytest.mark.requirement("F-133")
def test_a_late_answer_goes_nowhere_and_the_connection_serves_others():
    with raw_server() as server, host_of() as host:
        server.on("resources/read", lambda r: forever() if "slow" in r.params["uri"] else READ)
        target = target_of(server.url)

        async def both():
            read = host.sessions.read_resource
            slow = read(target, "test://slow", 0.3)
            fast = read(target, "test://fast", 5)
            return await asyncio.gather(slow, fast)

        slow, fast = host.run(both())
        assert slow.kind == FaultKind.TIMEOUT
        assert fast["contents"] == READ["contents"]


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_a_caller_that_gives_up_is_noticed_by_the_server(revision):
    with raw_server(revisions=(revision,)) as server, host_of() as host:
        ended = []

        async def hang(_):
            try:
                await forever()
            finally:
                ended.append(True)

        server.on("resources/read", hang)
        target = target_of(server.url)
        host.connect(target)

        async def give_up():
            read = host.sessions.read_resource
            call = asyncio.create_task(read(target, "test://one", 5))
            while not server.count("resources/read"):
                await asyncio.sleep(0.005)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            async with asyncio.timeout(2):
                while revision == LEGACY and not server.count("notifications/cancelled"):
                    await asyncio.sleep(0.005)

        host.run(give_up())
        withdrawn = [r.params["requestId"] for r in server.seen("notifications/cancelled")]
        asked = [r.message["id"] for r in server.seen("resources/read")]
        assert withdrawn == (asked if revision == LEGACY else [])
