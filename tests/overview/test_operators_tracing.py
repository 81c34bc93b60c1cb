"""Traces: what is recorded where, what never is, and who hears of a trace."""

from __future__ import annotations

import atexit
import queue
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from celery import shared_task
from celery.signals import before_task_publish
from django.core.exceptions import ImproperlyConfigured
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from connectors.runtime import close_runtime
from connectors.sessions.outward import Outward, go_out_by
from connectors.tasks import check_connector, list_connectors
from overview.operators import tracing
from overview.refresh import refresh
from tests.connectors.outside import Outside, install, resource, site_on_a_port, text, token_for
from tests.connectors.outside import tool as tool_entry
from tests.overview.factories import entry
from tests.overview.served import FACETED, publish
from tests.overview.served import connect as connected
from tests.servers.raw import LEGACY, MODERN, raw_server
from workspaces import spans

STRANGER = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACEPARENT = f"00-{STRANGER}-00f067aa0ba902b7-01"
CONTEXT = ("traceparent", "tracestate", "baggage")


@pytest.fixture
def telling():
    go_out_by(Outward(tells_trace=True))
    yield
    go_out_by(Outward())


def trace_of(span):
    return f"{span.context.trace_id:032x}"


def tied_to(child, parent):
    return child.parent is not None and child.parent.span_id == parent.context.span_id


# --- When ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environ", "is_asked"),
    [
        ({}, False),
        ({"OTEL_SERVICE_NAME": "us"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318/v1/traces"}, True),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c"}, False),
        ({"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c"}, False),
    ],
)
def test_traces_are_recorded_only_when_a_place_for_them_is_named(environ, is_asked):
    assert tracing.is_asked_for(environ) is is_asked


def test_without_a_place_for_them_a_span_is_nothing(alice_client):
    assert not spans.current().is_recording()
    assert spans.carried() == {}
    assert alice_client.get("/w/acme/").status_code == 200


@pytest.mark.parametrize("module", ["sdk.trace.export", "exporter.otlp.proto.http.trace_exporter"])
def test_a_missing_package_is_named_with_the_way_to_it(monkeypatch, module):
    monkeypatch.setitem(sys.modules, f"opentelemetry.{module}", None)
    with pytest.raises(ImproperlyConfigured, match=r"requirements-otel\.lock"):
        tracing.start({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"})


@pytest.mark.parametrize(
    "more", [{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, {"OTEL_TRACES_EXPORTER": "zipkin"}]
)
def test_another_way_to_send_them_than_the_one_there_is_is_refused(more):
    with pytest.raises(ImproperlyConfigured, match="OTLP over HTTP alone"):
        tracing.start({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", **more})


# --- What ---------------------------------------------------------------------------------------


def test_a_request_is_named_by_its_route_and_numbered_as_in_the_log(alice_client, recorded):
    answer = alice_client.get("/w/acme/?q=secret", headers={"traceparent": TRACEPARENT})
    (web,) = recorded.named("GET /w/<slug:slug>/")
    assert web.attributes == {
        "http.request.method": "GET",
        "http.route": "/w/<slug:slug>/",
        "http.response.status_code": 200,
        "outcome": "answered",
        "request_id": answer["X-Request-ID"],
    }
    assert trace_of(web) != STRANGER


def test_an_unknown_method_and_address_are_not_repeated(client, recorded):
    client.generic("SECRET", "/secret/secret/")
    assert [each.name for each in recorded.all()] == ["_OTHER"]
    assert "secret" not in recorded.all()[0].to_json().lower()


def test_a_proxys_trace_goes_on_here_where_the_operator_trusts_it(alice_client, recorded, settings):
    settings.TRUST_TRACE_CONTEXT = True
    alice_client.get("/w/acme/", headers={"traceparent": TRACEPARENT})
    (web,) = recorded.all()
    assert trace_of(web) == STRANGER


def test_a_failure_is_told_by_its_type_alone(recorded):
    with pytest.raises(RuntimeError), spans.span("something"):
        raise RuntimeError("secret")
    (span,) = recorded.all()
    assert dict(span.attributes) == {"outcome": "raised", "error.type": "RuntimeError"}
    assert (span.events, span.status.description) == ((), None)


@pytest.mark.django_db(transaction=True)
def test_checks_listings_and_reads_are_spans_with_their_connector_and_outcome(acme, recorded):
    with raw_server(capabilities={**FACETED, "tools": {}}) as server:
        publish(server, entry("a"))
        connector = connected(acme, server)
        server.on("tools/list", {"tools": []})
        list_connectors([connector.pk])
        refresh([connector.pk])
        close_runtime()
    (listed,), (facet,) = recorded.named("tools/list"), recorded.named("facet read")
    (read,) = recorded.named("resources/read")
    assert recorded.named("ping") and recorded.named("resources/list")
    assert {each.attributes["connector.id"] for each in recorded.all()} == {connector.pk}
    assert tied_to(read, facet)
    assert (facet.attributes["outcome"], read.attributes["outcome"]) == ("counted", "ok")
    assert listed.attributes["mcp.method.name"] == "tools/list"


@pytest.mark.django_db(transaction=True)
def test_what_fails_is_a_span_with_the_kind_of_fault(acme, recorded):
    connector = install(acme, "mail", check_due_at="2026-01-01T00:00:00Z")
    check_connector(connector.pk)
    asked = recorded.named("ping")
    assert {each.attributes["outcome"] for each in asked} == {"unreachable"}
    assert not asked[0].status.is_ok


@pytest.mark.django_db(transaction=True)
def test_what_an_agents_request_queues_belongs_to_its_trace(acme, alice, recorded):
    install(acme, "mail")  # Nothing is listed of it, so that its listings are due.
    queued = []

    def note(sender, headers, **_):
        queued.append((sender, headers.get("traceparent", "")))

    before_task_publish.connect(note)
    with site_on_a_port() as site:
        Outside(site, "acme", token_for(acme, alice)).post()
    before_task_publish.disconnect(note)
    (web,) = recorded.named("POST /mcp/<slug>")
    assert [sender for sender, _ in queued] == ["connectors.tasks.list_connectors"]
    assert trace_of(web) in queued[0][1]


def call_with_a_citation(acme, alice, server, revision):
    """An outside agent's call, with its own trace context wherever it may put one."""
    server.on("tools/call", text("sent"))
    server.on("resources/read", lambda request: resource(request.params["uri"], "read"))
    listings = {
        "tools": [tool_entry("send", cites={"files": ["crm"]})],
        "templates": ["crm://{+id}"],
    }
    install(acme, "mail", server.url, listings=listings)
    with site_on_a_port() as site:
        agent = Outside(site, "acme", token_for(acme, alice))
        meta = dict.fromkeys(CONTEXT, TRACEPARENT) | {"mine": "kept"}
        params = {"name": "mail__send", "arguments": {"files": ["crm://1"]}, "_meta": meta}
        answer = agent.post("tools/call", params, traceparent=TRACEPARENT, baggage="a=b")
    close_runtime()
    assert answer.status_code == 200
    (call,), (read,) = server.seen("tools/call"), server.seen("resources/read")
    assert call.params["_meta"]["mine"] == "kept"
    return call, read


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("revision", [MODERN, LEGACY])
def test_a_call_from_outside_is_one_trace_that_no_server_hears_of(acme, alice, recorded, revision):
    with raw_server(revisions=(revision,)) as server:
        sent = call_with_a_citation(acme, alice, server, revision)
        for request in server.requests:
            told = {*request.headers, *request.params.get("_meta", {})}
            assert told.isdisjoint(CONTEXT)
    assert len(sent) == 2
    (web,) = recorded.named("POST /mcp/<slug>")
    (call,), (argument,) = recorded.named("tool call"), recorded.named("resource argument")
    (exchange,), (read,) = recorded.named("tools/call"), recorded.named("resources/read")
    assert web.parent is None and web.attributes["mcp.method.name"] == "tools/call"
    assert tied_to(call, web) and tied_to(exchange, call) and tied_to(argument, call)
    assert tied_to(read, argument)
    assert {each.attributes["outcome"] for each in (call, argument, exchange)} == {"ok"}
    assert trace_of(call) != STRANGER


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("revision", [MODERN, LEGACY])
def test_servers_hear_of_the_hosts_own_trace_when_the_operator_says_so(
    acme, alice, recorded, telling, revision
):
    with raw_server(revisions=(revision,)) as server:
        sent = call_with_a_citation(acme, alice, server, revision)
    (web,) = recorded.named("POST /mcp/<slug>")
    exchanges = [*recorded.named("tools/call"), *recorded.named("resources/read")]
    for request, exchange in zip(sent, exchanges, strict=True):
        told = request.headers["traceparent"]
        assert told.startswith(f"00-{trace_of(web)}-{exchange.context.span_id:016x}-")
        assert request.params["_meta"]["traceparent"] == told
        assert "baggage" not in {*request.headers, *request.params["_meta"]}


# --- Workers ------------------------------------------------------------------------------------

ran: queue.Queue[str | None] = queue.Queue()


@shared_task
def run_and_queue(more):
    ran.put(spans.trace_id())
    if more:
        run_and_queue.delay(more - 1)


def test_a_task_belongs_to_the_trace_of_what_queued_it(recorded, worker):
    with spans.span("a request", carrier={}):
        begun = spans.trace_id()
        assert begun is not None
        run_and_queue.delay(1)
    run_and_queue.delay(0)
    seen = [ran.get(timeout=10) for _ in range(3)]
    assert seen.count(begun) == 2
    assert len(set(seen)) == 2


# --- Where to -----------------------------------------------------------------------------------


class Collector(HTTPServer):
    """An OTLP/HTTP receiver."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Receive)
        self.received: queue.Queue[tuple[str, bytes]] = queue.Queue()


class _Receive(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.received.put((self.path, body))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def ended():
    """Record no more, and leave no thread behind."""
    provider = tracing._provider
    tracing.record(None)
    atexit.unregister(tracing.flush)
    if provider is not None:
        provider.shutdown()


def test_spans_arrive_at_a_collector_by_otlp(monkeypatch, client, db):
    collector = Collector()
    threading.Thread(target=collector.serve_forever, args=(0.05,), daemon=True).start()
    place = f"http://127.0.0.1:{collector.server_port}"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", place)
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
    try:
        tracing.start()
        client.get("/sign-in/")
        tracing.flush()
        path, body = collector.received.get(timeout=10)
    finally:
        ended()
        collector.shutdown()
        collector.server_close()
    assert path == "/v1/traces"
    (found,) = ExportTraceServiceRequest.FromString(body).resource_spans
    said = {each.key: each.value.string_value for each in found.resource.attributes}
    assert said == {"service.name": "workspace-overview", "deployment.environment": "test"}
    assert found.scope_spans[0].spans[0].name == "GET /sign-in/"


def test_a_collector_that_is_silent_holds_no_ending_process_up(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = f"http://127.0.0.1:{silent.getsockname()[1]}"
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", place)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
        monkeypatch.setattr(tracing, "FLUSH_SECONDS", 0.05)
        try:
            tracing.start()
            with spans.span("something"):
                pass
            tracing.flush()
            assert "last-spans" in [each.name for each in threading.enumerate()]
        finally:
            silent.close()
            ended()
