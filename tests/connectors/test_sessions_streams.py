"""Answers as event streams, in the shapes that servers give them."""

from __future__ import annotations

import asyncio
import json

import pytest

from connectors.sessions import FaultKind
from tests.connectors.session_host import host_of, target_of
from tests.servers.raw import (
    LEGACY,
    MODERN,
    Error,
    Reply,
    answer,
    event,
    forever,
    raw_server,
    stream,
)

READ = {"contents": [{"uri": "test://one", "text": '{"count": 3}'}]}


def progress(token, value):
    params = {"progressToken": token, "progress": value, "total": 10, "message": "step"}
    message = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
    return json.dumps(message).encode()


def read_from(reply_of, *, revision=MODERN, seconds=5, **limits):
    with raw_server(revisions=(revision,)) as server, host_of(**limits) as host:
        server.on("resources/read", reply_of)
        result = host.read(target_of(server.url), seconds=seconds)
        return result["contents"] if isinstance(result, dict) else result


@pytest.mark.requirement("D3")
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_comments_progress_line_ends_and_split_data_are_read_whatever_the_chunks(end, size):
    def handler(request):
        first, second = answer(request, READ).split(b", ", 1)
        frames = b": hello\n\n" + event(progress(1, 1))
        frames += b"data: " + first + b", \ndata:" + second + b"\n\n"
        frames = frames.replace(b"\n", end)
        return stream(*(frames[i : i + size] for i in range(0, len(frames), size)))

    assert read_from(handler) == READ["contents"]


@pytest.mark.requirement("D3")
@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_last_event_without_its_blank_line_is_read(is_chunked):
    def handler(request):
        frame = b"event: message\ndata: " + answer(request, READ)
        if not is_chunked:
            return stream(frame)
        reply = stream(b"%x\r\n%s\r\n" % (len(frame), frame))  # and no last chunk
        reply.headers["transfer-encoding"] = "chunked"
        return reply

    assert read_from(handler) == READ["contents"]


@pytest.mark.requirement("D3")
def test_a_stream_without_a_result_ends_at_the_deadline_and_spares_other_calls():
    async def body():
        while True:
            yield event(progress(1, 1))
            await asyncio.sleep(0.02)

    with raw_server() as server, host_of() as host:
        target = target_of(server.url)
        server.on("resources/read", lambda _: Reply(body=body(), content_type="text/event-stream"))
        assert host.read(target, seconds=0.3).kind == FaultKind.TIMEOUT
        server.on("resources/read", READ)
        assert host.read(target)["contents"] == READ["contents"]
        assert server.count("server/discover") == 1


@pytest.mark.parametrize(
    "frames",
    [b"", b": only a comment\n\n", b"data: {\n", b"event: other\ndata: {}\n\n"],
)
def test_a_stream_that_ends_without_an_answer_is_a_fault(frames):
    assert read_from(lambda _: stream(frames)).kind == FaultKind.CLOSED


def test_a_stream_that_is_cut_can_be_resumed_on_a_2025_server():
    with raw_server(revisions=(LEGACY,), keeps_sessions=True) as server, host_of() as host:
        waiting = {}

        def read(request):
            waiting["request"] = request
            return stream(b"id: 41\nretry: 10\ndata:\n\n")

        def resume(request):
            if request.verb != "GET":
                return None
            return stream(event(answer(waiting["request"], READ), id="42"))

        server.intercept = resume
        server.on("resources/read", read)
        assert host.read(target_of(server.url)) == READ
        assert [r.headers["last-event-id"] for r in server.seen("GET")] == ["41"]


def test_a_stream_that_cannot_be_resumed_is_given_up():
    with raw_server(revisions=(LEGACY,)) as server, host_of() as host:
        server.on("resources/read", lambda _: stream(b"id: 41\nretry: 1\ndata:\n\n"))
        fault = host.read(target_of(server.url))
        assert fault.kind == FaultKind.CLOSED
        assert server.count("GET") <= 6


def test_an_error_in_a_stream_is_the_server_s():
    def handler(request):
        error = {
            "jsonrpc": "2.0",
            "id": request.message["id"],
            "error": {"code": 5, "message": "no"},
        }
        return stream(event(json.dumps(error).encode()))

    fault = read_from(handler)
    assert (fault.kind, fault.code, fault.message) == (FaultKind.REMOTE, 5, "no")


def test_a_request_of_the_server_in_a_stream_is_answered():
    replies: list[dict[str, object]] = []

    async def body(request):
        for number, method in enumerate(["ping", "sampling/createMessage"]):
            asked = {"jsonrpc": "2.0", "id": f"s{number}", "method": method, "params": {}}
            yield event(json.dumps(asked).encode())
        async with asyncio.timeout(3):
            while len(replies) < 2:
                await asyncio.sleep(0.005)
        yield event(answer(request, READ))

    def note(request):
        if "method" not in request.message and request.verb == "POST":
            replies.append(request.message)
            return Reply(202)
        return None

    with raw_server(revisions=(LEGACY,)) as server, host_of() as host:
        server.intercept = note
        server.on("resources/read", lambda r: Reply(body=body(r), content_type="text/event-stream"))
        assert host.read(target_of(server.url)) == READ
    assert replies[0] == {"jsonrpc": "2.0", "id": "s0", "result": {}}
    assert (replies[1]["id"], replies[1]["error"]) == (
        "s1",
        {"code": -32601, "message": "Method not found"},
    )


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_progress_reaches_the_caller_who_asked_for_it(revision):
    told = []

    async def on_progress(value, total, message):
        told.append((value, total, message))

    def handler(request):
        token = request.params["_meta"]["progressToken"]
        frames = [progress(token, 1), progress("another", 5), progress(token, 2.5)]
        return stream(*map(event, frames), event(answer(request, {"content": []})))

    with raw_server(revisions=(revision,)) as server, host_of() as host:
        server.on("tools/call", handler)
        assert host.call(target_of(server.url), on_progress=on_progress)["content"] == []
    assert told == [(1, 10, "step"), (2.5, 10, "step")]


def notification(method, **params):
    return event(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode())


def listening(frames, *, revision=MODERN, **limits):
    changes: list[str | None] = []
    with raw_server(revisions=(revision,)) as server, host_of(**limits) as host:
        server.on("subscriptions/listen", frames)
        target = target_of(server.url)
        end = host.run(host.sessions.listen(target, ["test://one"], changes.append))
        return changes, end, server.seen("subscriptions/listen")


ACKNOWLEDGED = notification(
    "notifications/subscriptions/acknowledged",
    notifications={"resourceSubscriptions": ["test://one"]},
)


def test_a_subscription_tells_what_changed_until_the_server_ends_it():
    def frames(request):
        return stream(
            ACKNOWLEDGED,
            notification("notifications/resources/updated", uri="test://one"),
            notification("notifications/resources/list_changed"),
            notification("notifications/message", data="x"),
            event(answer(request, {})),
        )

    changes, end, asked = listening(frames)
    assert (changes, end) == (["test://one", None], None)
    wanted = {"resourcesListChanged": True, "resourceSubscriptions": ["test://one"]}
    assert asked[0].params["notifications"] == wanted


def test_a_subscription_that_is_cut_is_a_fault():
    changes, end, _ = listening(lambda _: stream(ACKNOWLEDGED))
    assert (changes, end.kind) == ([], FaultKind.CLOSED)


def test_a_subscription_that_falls_silent_is_a_fault():
    async def body():
        yield ACKNOWLEDGED
        await forever()

    _, end, _ = listening(
        lambda _: Reply(body=body(), content_type="text/event-stream"), silence_seconds=0.2
    )
    assert (end.kind, end.message) == (FaultKind.TIMEOUT, "The server fell silent.")


def test_a_server_that_grants_nothing_is_not_listened_to():
    nothing = notification("notifications/subscriptions/acknowledged", notifications={})
    assert listening(lambda _: stream(nothing))[1].kind == FaultKind.PROTOCOL


def test_subscriptions_need_a_server_that_has_them():
    assert listening(lambda _: Error(-32601, "Method not found"))[1].kind == FaultKind.REMOTE
    assert listening({}, revision=LEGACY)[1].kind == FaultKind.PROTOCOL
