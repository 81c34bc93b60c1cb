"""What becomes of a tool call through the endpoint: what the client gets, what a failure costs."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

from connectors.models import Connector
from tests.connectors.outside import (
    DECLARATION,
    MODES,
    eventually,
    install,
    text,
    tool,
    tool_server,
    traces,
    words_of,
)
from tests.servers.raw import Error, Reply, answer, event, forever, raw_server, stream


@pytest.fixture
def server():
    with tool_server() as running:
        yield running


@pytest.mark.requirement("R-148")
@pytest.mark.parametrize("mode", MODES)
def test_a_result_comes_back_as_the_server_gave_it(agent, acme, server, mode):
    answer = {
        "content": [
            {"type": "text", "text": "é\u2028", "annotations": {"priority": 0.5}},
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        ],
        "structuredContent": {"b": None, "a": [1, 2.5, 10**20]},
        "isError": True,
        "_meta": {"vendor/key": {"x": 1}, DECLARATION: {"crm://1": {}}},
    }
    server.on("tools/call", answer)
    install(acme, "crm", server.url, listings={"tools": ["lookup"]})

    result = agent.call("crm__lookup", mode=mode).model_dump(by_alias=True, exclude_none=True)

    assert result["content"][0]["text"] == "é\u2028"
    assert result["content"][1] == {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    assert result["structuredContent"] == {"b": None, "a": [1, 2.5, 10**20]}
    assert result["isError"] is True
    assert result["_meta"]["vendor/key"] == {"x": 1}
    [trace] = traces()
    assert (trace.outcome, trace.events.count()) == ("tool_error", 0)
    agent.call("crm__lookup", mode=mode)
    assert DECLARATION not in server.seen("tools/call")[-1].params.get("_meta", {})


@pytest.mark.requirement("R-138", "R-137")
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("mode", MODES)
def test_other_meta_keys_survive_and_the_clients_envelope_stays_behind(agent, acme, mode, revision):
    arguments = {"about": "crm://1", "nested": {DECLARATION: {"crm://1": "mine"}}}
    with raw_server(revisions=(revision,), capabilities={"tools": {}}) as server:
        server.on("tools/call", text("done"))
        declared = tool("find", cites={"about": ["crm"]})
        install(acme, "crm", server.url, listings={"tools": [declared]})

        agent.call("crm__find", arguments, mode=mode, meta={"vendor/trace": "abc"})

    sent = server.seen("tools/call")[0].params
    assert sent["arguments"] == arguments
    meta = sent["_meta"]
    assert meta.pop("vendor/trace") == "abc"
    assert meta.pop(DECLARATION)["crm://1"]["error"]["code"] == "not_found"
    if revision == "2025-11-25":
        assert meta == {}
    else:
        assert meta["io.modelcontextprotocol/clientInfo"]["name"] != "mcp"


@pytest.mark.requirement("R-136")
@pytest.mark.parametrize("mode", MODES)
def test_a_forged_key_is_always_removed(agent, acme, server, mode):
    tools = ["plain", tool("cites", cites={"to": ["crm"]})]
    install(acme, "crm", server.url, listings={"tools": tools})
    forged = {DECLARATION: {"crm://1": {"contents": [{"uri": "crm://1", "text": "forged"}]}}}

    for name, arguments in [("plain", {"to": "crm://1"}), ("cites", {}), ("cites", {"to": 5})]:
        agent.call(f"crm__{name}", arguments, mode=mode, meta=forged)
        assert DECLARATION not in server.seen("tools/call")[-1].params.get("_meta", {})

    agent.call("crm__cites", {"to": "crm://1"}, mode=mode, meta=forged)
    assert "forged" not in json.dumps(server.seen("tools/call")[-1].message)


FAILURES: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "an error": (Error(-32602, "No such id.", {"id": 7}), "No such id.", {"code": -32602}),
    "too many requests": (
        Reply(429, {"retry-after": "30"}),
        "Try again in 30 seconds.",
        {"kind": "rate_limited", "httpStatus": 429, "retryAfterSeconds": 30.0},
    ),
    "a failing server": (Reply(500), "Crm: ", {"kind": "http", "httpStatus": 500}),
    "a refused credential": (Reply(401), "Crm: ", {"kind": "unauthorized"}),
    "no JSON": (Reply(body=b"<html>"), "Crm: ", {"kind": "protocol"}),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("failure", FAILURES)
def test_a_servers_failure_is_a_clear_result(agent, acme, server, mode, failure):
    answer, words, details = FAILURES[failure]
    server.on("tools/call", lambda request: answer)
    install(acme, "crm", server.url, listings={"tools": ["lookup"]})

    result = agent.call("crm__lookup", mode=mode)

    assert result.is_error
    assert words in words_of(result)
    assert "Traceback" not in words_of(result)
    assert details.items() <= result.meta["ai.nimblebrain/fault"].items()
    [trace] = traces()
    assert trace.outcome == "failed" and "No such id" not in trace.problem
    assert trace.fault == result.meta["ai.nimblebrain/fault"]["kind"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "garbage",
    [
        {},
        {"content": "text"},
        {"content": [{"type": "nonsense"}]},
        {"content": [], "isError": "maybe"},
        {"resultType": "input_required", "inputRequests": {}},
        text("half a pair: \ud800"),
        {"content": [], "structuredContent": {"x": float("inf")}},
    ],
)
def test_garbage_for_a_result_is_an_error_result(agent, acme, server, mode, garbage, caplog):
    server.on("tools/call", garbage)
    install(acme, "crm", server.url, listings={"tools": ["lookup"]})

    result = agent.call("crm__lookup", mode=mode)

    assert result.is_error and words_of(result)
    assert "nonsense" not in caplog.text and "maybe" not in caplog.text


def test_a_server_that_never_answers_is_an_error_after_the_deadline(agent, acme, server, settings):
    settings.TOOL_CALL_SECONDS = 0.3
    server.on("tools/call", lambda request: forever())
    install(acme, "crm", server.url, listings={"tools": ["lookup"]})

    result = agent.call("crm__lookup")

    assert result.is_error
    assert result.meta["ai.nimblebrain/fault"]["kind"] == "timeout"


@pytest.mark.requirement("D14")
def test_a_lost_connection_has_the_connector_looked_at(agent, acme, queued):
    crm = install(acme, "crm", listings={"tools": ["lookup"]})

    result = agent.call("crm__lookup")

    assert result.is_error
    traces()
    assert ("check_connector", crm.pk) in queued
    assert Connector.objects.get(pk=crm.pk).connection == "ready"


@pytest.mark.requirement("D1")
@pytest.mark.parametrize(
    ("annotations", "calls"),
    [({}, 1), ({"readOnlyHint": True}, 2), ({"idempotentHint": True}, 2)],
)
def test_only_a_repeatable_tool_is_called_again_after_a_lost_session(
    agent, acme, annotations, calls
):
    with raw_server(
        revisions=("2025-11-25",), capabilities={"tools": {}}, keeps_sessions=True
    ) as server:
        server.on("tools/call", text("done"))
        listings = {"tools": [tool("run", annotations=annotations)]}
        install(acme, "crm", server.url, listings=listings)
        agent.call("crm__run")
        server.sessions.clear()

        result = agent.call("crm__run")

    assert result.is_error is (calls == 1)
    assert server.count("tools/call") == 1 + calls


@pytest.mark.parametrize("mode", MODES)
def test_progress_passes_through(agent, acme, mode):
    seen = []

    async def progress(done, total, message):
        seen.append((done, total, message))

    with raw_server(capabilities={"tools": {}}) as server:
        server.on("tools/call", _with_progress)
        install(acme, "crm", server.url, listings={"tools": ["slow"]})

        result = agent.call("crm__slow", mode=mode, progress_callback=progress)

    assert words_of(result) == "done"
    assert seen == [(1, 2, "half"), (2, 2, None)]


def _with_progress(request):
    token = request.params["_meta"]["progressToken"]

    def notice(**params):
        params = {"progressToken": token, **params}
        message = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
        return event(json.dumps(message).encode())

    return stream(
        notice(progress=1, total=2, message="half"),
        notice(progress=2, total=2),
        event(answer(request, text("done"))),
    )


@pytest.mark.requirement("R-147")
@pytest.mark.parametrize("mode", MODES)
def test_a_client_that_goes_away_cancels_the_call(agent, acme, server, mode):
    called = threading.Event()

    async def hang(request):
        called.set()
        await forever()

    server.on("tools/call", hang)
    install(acme, "crm", server.url, listings={"tools": ["slow"]})

    async def leave(client):
        call = asyncio.ensure_future(client.call_tool("crm__slow", {}))
        assert await asyncio.to_thread(called.wait, 5)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)

    agent.talk(leave, mode)

    assert [each.outcome for each in eventually(traces)] == ["cancelled"]
