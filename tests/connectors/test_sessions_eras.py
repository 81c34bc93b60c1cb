"""The era of a connection, what each side says of itself, and what travels with a request."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from connectors.protocol.identifiers import FACETS, RESOURCE_ARGUMENTS
from connectors.sessions import Connected, Fault, FaultKind
from tests.connectors.session_host import RESOURCE_LIMITS, host_of, target_of
from tests.servers.raw import CAPABILITIES_KEY, LEGACY, MODERN, Error, Reply, forever, raw_server

READ = {"contents": [{"uri": "test://one", "text": '{"count": 3}'}]}
FACET_SERVER: dict[str, object] = {"resources": {}, "extensions": {FACETS: {}}}


def claimed(request):
    return request.params["_meta"][CAPABILITIES_KEY]["extensions"]


@pytest.mark.requirement("F-001", "F-004", "R-001", "R-005")
def test_a_2025_server_hears_the_claims_in_initialize_and_its_own_are_read_from_there():
    with raw_server(revisions=(LEGACY,), capabilities=FACET_SERVER) as server, host_of() as host:
        connected = host.connect(target_of(server.url))
    assert connected == Connected(LEGACY, "raw", "1.0", FACET_SERVER, None)
    extensions = server.seen("initialize")[0].params["capabilities"]["extensions"]
    assert extensions == {FACETS: {}, RESOURCE_ARGUMENTS: RESOURCE_LIMITS}


@pytest.mark.requirement("F-002", "F-005", "R-002", "R-005")
def test_a_2026_server_hears_the_claims_on_every_request():
    with raw_server(capabilities=FACET_SERVER) as server, host_of() as host:
        server.on("resources/read", READ)
        server.on("resources/list", {"resources": []})
        target = target_of(server.url)
        connected = host.connect(target)
        host.read(target)
        host.entries(target)
        host.ping(target)
    assert (connected.revision, connected.capabilities) == (MODERN, FACET_SERVER)
    assert [request.method for request in server.requests] == [
        "server/discover",
        "resources/read",
        "resources/list",
        "server/discover",
    ]
    for request in server.requests:
        assert claimed(request) == {FACETS: {}, RESOURCE_ARGUMENTS: RESOURCE_LIMITS}


@pytest.mark.requirement("R-003", "F-013")
@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_a_personal_connector_claims_no_resource_arguments(revision):
    with raw_server(revisions=(revision,)) as server, host_of() as host:
        server.on("resources/read", READ)
        target = target_of(server.url, is_personal=True)
        host.read(target)
    for request in server.requests:
        assert RESOURCE_ARGUMENTS not in str(request.message)
    assert FACETS in str(server.requests[0].message)


@pytest.mark.requirement("F-003")
def test_a_server_of_both_eras_is_spoken_to_in_the_later_one():
    with raw_server(revisions=(LEGACY, MODERN)) as server, host_of() as host:
        assert host.connect(target_of(server.url)).revision == MODERN
        assert server.count("initialize") == 0


@pytest.mark.requirement("F-003")
@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply(401, {"www-authenticate": "Bearer"}), FaultKind.UNAUTHORIZED),
        (Reply(403), FaultKind.FORBIDDEN),
        (Reply(429, {"retry-after": "7"}), FaultKind.RATE_LIMITED),
        (Reply(500), FaultKind.HTTP),
        (Error(-32603, "Internal error", status=500), FaultKind.HTTP),
        (Reply(502), FaultKind.HTTP),
        (Reply(503), FaultKind.HTTP),
        (Reply(504), FaultKind.HTTP),
    ],
)
def test_an_outage_on_the_probe_is_no_old_server(reply, kind):
    with raw_server(revisions=(LEGACY, MODERN)) as server, host_of() as host:
        server.intercept = lambda r: reply if r.method == "server/discover" else None
        target = target_of(server.url)
        fault = host.connect(target)
        assert isinstance(fault, Fault)
        assert fault.kind == kind
        assert fault.http_status == reply.status
        assert server.count("initialize") == 0
        server.intercept = None
        assert host.connect(target).revision == MODERN


@pytest.mark.requirement("F-003")
def test_silence_on_the_probe_is_no_old_server():
    with (
        raw_server(revisions=(LEGACY, MODERN)) as server,
        host_of(connect_seconds=0.3) as host,
    ):
        server.intercept = lambda r: forever() if r.method == "server/discover" else None
        fault = host.connect(target_of(server.url))
        assert (fault.kind, server.count("initialize")) == (FaultKind.TIMEOUT, 0)


@pytest.mark.parametrize(
    "reply",
    [
        Reply(400),
        Reply(404, body=b"not here", content_type="text/plain"),
        Reply(405),
        Error(-32000, "Bad Request: Server not initialized", status=400),
        Error(-32601, "Method not found", status=500),
        Error(-32602, "Invalid request parameters"),
    ],
)
def test_a_server_that_does_not_know_the_probe_is_an_old_one(reply):
    with raw_server(revisions=(LEGACY,)) as server, host_of() as host:
        server.intercept = lambda r: reply if r.method == "server/discover" else None
        assert host.connect(target_of(server.url)).revision == LEGACY


@pytest.mark.parametrize("revision", [LEGACY, "2025-06-18", "2025-03-26", "2024-11-05"])
def test_every_revision_of_the_2025_era_is_spoken(revision):
    with raw_server(revisions=(revision,), keeps_sessions=True) as server, host_of() as host:
        server.on("resources/read", READ)
        target = target_of(server.url)
        assert host.connect(target).revision == revision
        assert host.read(target) == READ
    assert server.seen("resources/read")[0].headers["mcp-protocol-version"] == revision
    assert server.count("DELETE") == 1


def test_a_server_without_a_common_revision_is_a_fault():
    with raw_server(revisions=("1999-01-01",)) as server, host_of() as host:
        assert host.connect(target_of(server.url)).kind == FaultKind.PROTOCOL


@pytest.mark.requirement("F-009", "F-010")
@pytest.mark.parametrize("revision", [LEGACY, MODERN])
@pytest.mark.parametrize("value", [None, True, ["x"], {"later": 1}])
def test_odd_capabilities_leave_the_connection_usable_and_are_handed_on_raw(revision, value):
    odd = {"resources": True, "extensions": {FACETS: value}, "tools": None}
    with raw_server(revisions=(revision,), capabilities=odd) as server, host_of() as host:
        server.on("resources/read", READ)
        target = target_of(server.url)
        assert host.connect(target).capabilities == odd
        assert host.read(target)["contents"] == READ["contents"]


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
@pytest.mark.parametrize("value", [None, "text", ["x"]])
def test_capabilities_that_are_no_object_are_none(revision, value):
    with raw_server(revisions=(revision,)) as server, host_of() as host:
        server.capabilities = value
        assert host.connect(target_of(server.url)).capabilities == {}


def test_a_known_discovery_connects_without_any_request():
    with raw_server(capabilities=FACET_SERVER) as server, host_of() as host:
        server.on("resources/read", READ)
        target = target_of(server.url)
        first = host.connect(target)
        again = replace(target, generation=2, discovery=first.discovery)
        server.requests.clear()
        assert host.connect(again) == first
        assert server.requests == []
        host.read(again)
        assert [request.method for request in server.requests] == ["resources/read"]


@pytest.mark.parametrize(
    "discovery", ["", "{", "[]", "{}", '{"supportedVersions": ["2031-01-01"]}']
)
def test_a_discovery_that_is_of_no_use_is_taken_anew(discovery):
    with raw_server() as server, host_of() as host:
        assert host.connect(target_of(server.url, discovery=discovery)).revision == MODERN
        assert server.count("server/discover") == 1


@pytest.mark.parametrize("keeps_sessions", [True, False])
def test_a_server_that_became_an_old_one_is_negotiated_with_anew(keeps_sessions):
    with (
        raw_server() as server,
        host_of() as host,
    ):
        server.on("resources/read", READ)
        target = target_of(server.url)
        target = replace(target, generation=2, discovery=host.connect(target).discovery)
        server.revisions, server.keeps_sessions = (LEGACY,), keeps_sessions
        refusal = Error(-32000, "Bad Request: Server not initialized", status=400)
        server.intercept = lambda r: refusal if r.is_modern and r.method[0] == "r" else None
        assert host.read(target) == READ
        assert host.connect(target).discovery is None
        host.read(target)
        assert server.count("initialize") == 1
        assert server.count("server/discover") == 2


def test_a_check_notices_that_a_server_became_an_old_one():
    with raw_server() as server, host_of() as host:
        target = target_of(server.url)
        host.connect(target)
        server.revisions = (LEGACY,)
        assert host.ping(target).revision == LEGACY


@pytest.mark.requirement("F-012")
def test_a_check_brings_the_capabilities_of_today():
    with raw_server(capabilities=FACET_SERVER) as server, host_of() as host:
        target = target_of(server.url)
        host.connect(target)
        server.capabilities = {"resources": {}}
        assert host.ping(target).capabilities == {"resources": {}}
        assert host.connect(target).capabilities == {"resources": {}}


def test_an_old_server_without_ping_is_alive():
    with raw_server(revisions=(LEGACY,)) as server, host_of() as host:
        server.on("ping", lambda _: Error(-32601, "Method not found"))
        assert host.ping(target_of(server.url)).revision == LEGACY


@pytest.mark.requirement("F-087", "R-140")
@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_a_read_carries_its_uri_the_era_and_nothing_that_tells_who_reads(revision):
    span = NonRecordingSpan(SpanContext(0xABC, 0xDEF, False, TraceFlags(1)))
    with raw_server(revisions=(revision,)) as server, host_of() as host:
        server.on("resources/read", READ)
        target = target_of(server.url, headers=(("Authorization", "Bearer workspace"),))

        async def traced_read():
            with trace.use_span(span):
                return await host.sessions.read_resource(target, "test://one", 5)

        host.run(traced_read())
    request = server.seen("resources/read")[0]
    meta = request.params.pop("_meta", {})
    assert request.params == {"uri": "test://one"}
    assert all(key.startswith("io.modelcontextprotocol/") for key in meta)
    allowed = {"accept", "accept-encoding", "authorization", "content-length", "content-type"}
    allowed |= {"host", "mcp-method", "mcp-name", "mcp-protocol-version", "user-agent"}
    assert set(request.headers) <= allowed
    assert request.headers["authorization"] == "Bearer workspace"


def test_a_call_claims_for_its_outside_client_on_a_2026_connection():
    with raw_server() as server, host_of() as host:
        server.on("tools/call", {"content": []})
        target = target_of(server.url)
        meta = {RESOURCE_ARGUMENTS: {"crm://1": {"contents": []}}, "traceparent": "00-a"}
        capabilities: dict[str, object] = {"sampling": {}}
        assert host.call(target, meta=meta, client_capabilities=capabilities)["content"] == []
    sent = server.seen("tools/call")[0].params
    assert sent["_meta"][CAPABILITIES_KEY] == capabilities
    assert {key: sent["_meta"][key] for key in meta} == meta
    assert (sent["name"], sent["arguments"]) == ("send", {})


def test_a_tool_whose_arguments_travel_as_headers_is_called_with_them():
    schema = {"type": "object", "properties": {"to": {"type": "string", "x-mcp-header": "To"}}}
    tool = {"name": "send", "inputSchema": schema}
    wrong = {"name": "bad", "inputSchema": {"type": "object", "x-mcp-header": "To"}}

    def call(request):
        if request.headers.get("mcp-param-to") != "ann":
            return Error(-32020, "Header mismatch", status=400)
        return {"content": []}

    with raw_server(capabilities={"tools": {}}) as server, host_of() as host:
        server.on("tools/list", {"tools": [wrong, tool]})
        server.on("tools/call", call)
        target = target_of(server.url)
        assert host.call(target, arguments={"to": "ann"})["content"] == []
        assert host.call(target, arguments={"to": "ann"})["content"] == []
        assert (server.count("tools/list"), server.count("tools/call")) == (1, 3)
        listed = host.entries(target, "tools/list")
        assert (listed.entries, listed.unreadable) == ([tool], 1)


def test_callers_of_different_connectors_share_nothing():
    with raw_server() as server, host_of() as host:
        server.on("resources/read", READ)
        one, two = (
            target_of(server.url, headers=(("Authorization", f"Bearer {name}"),))
            for name in ("one-secret", "two-secret")
        )

        async def both():
            read = host.sessions.read_resource
            await asyncio.gather(*(read(t, "test://one", 5) for t in (one, two)))

        host.run(both())
    assert server.count("server/discover") == 2
    assert {request.headers["authorization"] for request in server.requests} == {
        "Bearer one-secret",
        "Bearer two-secret",
    }
