"""What is recorded of a call, for how long, for whom; and that contents are recorded nowhere."""

from __future__ import annotations

import io
import logging
import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis
from django.apps import apps
from django.core import serializers
from django.core.cache import caches
from django.db import connection
from django.test.utils import CaptureQueriesContext

from connectors.actions import remove_connector
from connectors.models import ToolCall, TraceEvent
from connectors.tasks import forget_old
from connectors.traces import Event, Recorder, Trace, write_traces
from tests.connectors.outside import MODES, install, resource, text, tool, traces
from tests.servers.raw import Error, raw_server

MARKER = "zebra-7f3a-crossing"


@pytest.fixture
def mail():
    with raw_server(capabilities={"tools": {}}) as server:
        server.on("tools/call", text("sent"))
        yield server


@pytest.fixture
def crm():
    with raw_server() as server:
        yield server


@pytest.fixture
def world(agent, acme, mail, crm):
    install(acme, "mail", mail.url, listings={"tools": [tool("send", cites={"to": ["crm"]})]})
    install(acme, "crm", crm.url, listings={"templates": ["crm://signals/{id}", "crm://twice/{x}"]})
    install(acme, "copy", crm.url, listings={"templates": ["crm://twice/{y}"]})
    down = {"templates": ["crm://down/{id}"]}
    install(acme, "down", crm.url, connection="failed", listings=down)
    return agent


@pytest.mark.requirement("R-160", "R-161", "R-163", "R-164")
@pytest.mark.parametrize("mode", MODES)
def test_each_string_leaves_one_event(world, mail, crm, mode):
    def answer(request):
        uri = request.params["uri"]
        return resource(uri, "é😀x") if uri.endswith("/1") else Error(-32602, "gone")

    crm.on("resources/read", answer)
    uris = [
        "mail://1", "crm://signals/1", "crm://signals/2", "crm://twice/1", "crm://signals/1",
        "crm://down/1",
    ]  # fmt: skip

    world.call("mail__send", {"to": uris}, mode=mode)

    [call] = traces()
    events = [
        (each.position, each.kind, each.uri, each.server_name, each.code, each.size_bytes)
        for each in call.events.order_by("position")
    ]
    assert events == [
        (0, "resource_argument", "mail://1", "", "scheme_not_declared", 0),
        (1, "resource_argument", "crm://signals/1", "Crm", "ok", 7),
        (2, "resource_argument", "crm://signals/2", "Crm", "not_found", 0),
        (3, "resource_argument", "crm://twice/1", "", "ambiguous", 0),
        (4, "resource_argument", "crm://down/1", "", "not_found", 0),
    ]
    assert call.events.get(position=3).server is None
    assert (call.resources_read, call.resources_refused) == (1, 4)
    assert (call.tool, call.connector_name, call.outcome) == ("mail__send", "Mail", "ok")
    assert (call.caller, call.user.name, call.token.name) == ("outside", "Alice", "agent")
    assert all(0 <= each.offset_ms <= call.duration_ms for each in call.events.all())


@pytest.mark.requirement("R-162")
def test_contents_are_recorded_nowhere(world, mail, crm, caplog, queued, settings):
    """A marker in a resource, an argument and a result, and every place that could keep it."""
    caplog.set_level(logging.DEBUG)
    crm.on("resources/read", lambda request: resource(request.params["uri"], MARKER))
    mail.on("tools/call", text(MARKER))

    with CaptureQueriesContext(connection) as queries, _logged() as log:
        world.call("mail__send", {"to": "crm://signals/1", "body": MARKER})
        world.call("nb__read_resource", {"uri": "crm://signals/1"})
        mail.on("tools/call", {"content": [{"type": MARKER}]})
        world.call("mail__send", {"to": "crm://signals/1"})
        mail.on("tools/call", lambda request: Error(-32000, MARKER, {"data": MARKER}))
        world.call("mail__send", {"to": "crm://signals/1"})
        assert len(traces()) == 4

    assert MARKER in str(mail.seen("tools/call")[0].message)
    stored = "".join(
        serializers.serialize("json", model._default_manager.all())
        for model in apps.get_models()
        if model._meta.label not in ("connectors.Secret",)
    )
    kept = [stored, caplog.text, log.getvalue(), str(queued), _caches(settings.REDIS_URL)]
    kept += [str(query) for query in queries.captured_queries]
    assert all(MARKER not in place for place in kept)


def _caches(redis_url):
    """All that the cache and Redis hold."""
    if not redis_url:
        return str([vars(each) for each in caches.all()])
    store = redis.from_url(redis_url)
    return str([(key, store.dump(key)) for key in store.scan_iter()])


@contextmanager
def _logged():
    """Everything that any logger says, tracebacks included."""
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    logging.getLogger().addHandler(handler)
    yield log
    logging.getLogger().removeHandler(handler)


def test_a_call_does_not_wait_for_its_trace(world, monkeypatch):
    let_go = threading.Event()

    def write(batch):
        let_go.wait(10)
        write_traces(batch)

    slow = Recorder(write)
    monkeypatch.setattr("connectors.endpoint.calls.recorder", slow)

    world.call("mail__send")

    assert not ToolCall.objects.exists()
    let_go.set()
    assert slow.flush()
    assert ToolCall.objects.count() == 1


def trace(workspace, user, **changes):
    facts = {"caller": "outside", "token_id": None, "tool": "mail__send"}
    started = datetime.now(UTC)
    return Trace(workspace.pk, user_id=user.pk, started_at=started, **{**facts, **changes})


def test_what_is_gone_meanwhile_leaves_a_trace_without_it(transactional_db, acme, alice, bob):
    crm = install(acme, "crm")
    event = Event("crm://1", 1, "ok", 5, crm.pk, "Crm")
    facts = {"connector_id": crm.pk, "connector_name": "Crm", "events": [event]}
    gone = trace(acme, bob, token_id=12345, **facts)
    homeless = trace(acme, alice)
    homeless.workspace_id = 999_999
    remove_connector(crm, by=alice)
    bob.delete()

    write_traces([gone, homeless])

    [call] = ToolCall.objects.all()
    assert (call.connector, call.connector_name, call.user, call.token) == (None, "Crm", None, None)
    assert call.events.get().server_name == "Crm"


def test_names_that_no_database_takes_cost_no_trace(transactional_db, acme, alice):
    odd = trace(acme, alice, tool="a\x00b\ud800" + "c" * 500)
    odd.problem = "This token may not call a\x00b\ud800."
    odd.events = [Event("crm://\x00\ud800", 0, "not_found")]

    write_traces([odd])

    assert len(ToolCall.objects.get().tool) == 200
    assert TraceEvent.objects.get().uri == "crm://\x00\ud800"


def test_one_trace_that_cannot_be_written_costs_no_other(caplog):
    written: Any = []

    def write(batch):
        if "bad" in batch:
            raise ValueError
        written.extend(batch)

    recorder: Any = Recorder(write)
    for each in ["one", "bad", "two"]:
        recorder.put(each)

    assert recorder.flush()
    assert sorted(written) == ["one", "two"]


def test_too_many_waiting_traces_are_lost_and_said_to_be(monkeypatch, caplog):
    monkeypatch.setattr("connectors.traces.MAX_WAITING", 2)
    hold: Any = threading.Event()
    recorder: Any = Recorder(lambda batch: hold.wait(10))
    for number in range(500):
        recorder.put(number)
    hold.set()

    assert recorder.flush()
    assert "A trace was lost" in caplog.text


def test_traces_are_forgotten_after_their_days(transactional_db, acme, alice, settings):
    settings.TRACE_DAYS = 30
    old, young = trace(acme, alice), trace(acme, alice)
    old.started_at -= timedelta(days=30, seconds=1)
    old.events = [Event("crm://1", 0, "ok")]
    write_traces([old, young])

    forget_old()

    assert [call.pk for call in ToolCall.objects.all()] == [young.id]
    assert not TraceEvent.objects.exists()
