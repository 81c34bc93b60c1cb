"""A connection that nobody wants any more ends, in the process that says so and in all others."""

from __future__ import annotations

import asyncio
import threading
import time
from types import SimpleNamespace

import pytest

from connectors import runtime
from connectors.actions import disconnect_connector, remove_connector
from connectors.models import Connector
from connectors.runtime import close_runtime, sessions
from connectors.sessions import FaultKind
from tests.connectors.records import MARKER, added, asked, sheet
from tests.connectors.signing_in import look, read
from tests.overview.served import in_thread, wait_until
from tests.servers.raw import LEGACY, MODERN, forever, raw_server
from workspaces.background import background

pytestmark = pytest.mark.django_db(transaction=True)

ANOTHER = "another-secret-91c2"


@pytest.fixture(autouse=True)
def _no_sessions_left(queued):
    yield
    close_runtime()


@pytest.fixture(params=[MODERN, LEGACY])
def server(request):
    """A server of 2025 is said goodbye to: it forgets the session."""
    is_legacy = request.param == LEGACY
    with raw_server(revisions=(request.param,), keeps_sessions=is_legacy) as server:
        server.on("resources/read", {"contents": []})
        yield server


@pytest.fixture
def connector(acme, server):
    made = look(asked(added(acme, secrets=[("bearer", "token", MARKER)], url=server.url)))
    assert [read(made)["contents"] for _ in range(2)] == [[], []]
    return made


def press(client, act, data=None):
    assert client.post(f"/w/acme/connectors/mail/{act}/", data or {}).status_code == 302


def is_left(server):
    return server.open_connections == 0 and not server.sessions and not sessions().keys


def requests_after(server, seen):
    """What came since, but for the goodbye."""
    return [each.method for each in server.requests[seen:] if each.verb != "DELETE"]


@pytest.mark.parametrize(
    ("act", "data"), [("disconnect", {}), ("remove", {"typed": "Mail"})], ids=["rest", "gone"]
)
def test_disconnecting_and_removing_end_the_connection_at_once(
    connector, alice_client, server, act, data
):
    seen = len(server.requests)
    press(alice_client, act, data)
    wait_until(lambda: is_left(server))
    assert requests_after(server, seen) == []


def test_a_call_that_is_under_way_ends_with_its_connection(connector, alice_client, server):
    server.on("resources/read", lambda _: forever())
    outcomes = []
    reading = in_thread(lambda: outcomes.append(read(connector, seconds=30)))
    wait_until(lambda: server.count("resources/read") == 3)
    started = time.monotonic()
    press(alice_client, "disconnect")
    reading.join(10)
    assert [each.kind for each in outcomes] == [FaultKind.CLOSED]
    assert time.monotonic() - started < 5
    assert server.count("resources/read") == 3


def test_a_new_credential_ends_the_old_ones_connection_and_it_is_sent_no_more(
    connector, alice_client, server
):
    typed = sheet(name="Mail", url=server.url) | {"secret-bearer-token": ANOTHER}
    seen = len(server.requests)
    press(alice_client, "configure", typed)
    wait_until(lambda: is_left(server))
    look(connector)
    read(Connector.objects.get())
    sent = {each.headers["authorization"] for each in server.requests[seen:] if each.verb == "POST"}
    assert sent == {f"Bearer {ANOTHER}"}


def test_what_is_under_way_with_an_old_credential_may_end_in_good_order(
    connector, alice_client, server
):
    """A change of a setting breaks no call: nothing new is sent on the old connection."""
    is_over = threading.Event()

    async def answered(_):
        await asyncio.to_thread(is_over.wait, 10)
        return {"contents": []}

    server.on("resources/read", answered)
    outcomes = []
    reading = in_thread(lambda: outcomes.append(read(connector)))
    wait_until(lambda: server.count("resources/read") == 3)
    press(
        alice_client,
        "configure",
        sheet(name="Mail", url=server.url) | {"secret-clear-bearer-token": 1},
    )
    is_over.set()
    reading.join(10)
    assert outcomes[0]["contents"] == []
    wait_until(lambda: is_left(server))


@pytest.mark.parametrize("act", [disconnect_connector, remove_connector])
def test_another_process_hears_of_it_within_seconds(connector, server, monkeypatch, act):
    """This one is told nothing: as if the click had gone elsewhere."""
    close_runtime()
    monkeypatch.setattr(runtime, "UNWANTED_SECONDS", 0.1)
    monkeypatch.setattr("connectors.actions.end_unwanted", lambda: None)
    read(connector)
    assert sessions().keys
    act(connector, by=None)
    wait_until(lambda: is_left(server))


def test_a_connection_made_since_somebody_looked_at_what_is_wanted_stays(
    connector, server, monkeypatch
):
    waiting = []
    with monkeypatch.context() as busy:
        busy.setattr(runtime, "background", lambda: SimpleNamespace(submit=waiting.append))
        disconnect_connector(connector, by=None)
    read(look(asked(connector)))
    (hanging_up,) = waiting
    background().run(hanging_up, 5)
    assert sessions().keys == [(connector.pk, connector.generation)]


def test_what_is_wanted_is_left_alone(connector, alice_client, server):
    press(alice_client, "configure", sheet(name="Post", url=server.url))
    runtime.end_unwanted()
    assert sessions().keys == [(connector.pk, connector.generation)]
    handshakes = server.count("server/discover") + server.count("initialize")
    read(connector)
    assert server.count("server/discover") + server.count("initialize") == handshakes
