"""Servers that tell when a count changes: listened to while somebody looks, by one process."""

from __future__ import annotations

import asyncio
import json
import time
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.conf import settings as django_settings
from django.utils import timezone

from connectors.actions import disconnect_connector
from connectors.models import Connector
from connectors.queries import targets_of
from connectors.runtime import run, sessions
from examples.catalog import ExampleServers
from overview import subscriptions
from overview.models import StoredFacet, Subscription
from overview.subscription_leases import claim, mark_changed
from overview.subscriptions import Listener, listener
from overview.tasks import refresh_connectors, sweep_subscriptions
from tests.overview.factories import entry
from tests.overview.served import (
    DRAFTS,
    FACETED,
    connect,
    count,
    in_thread,
    publish,
    read_due,
    shown,
    wait_until,
)
from tests.servers.raw import LEGACY, MODERN, Error, Reply, event, forever, raw_server
from workspaces.actions import keep_watched
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db(transaction=True)

TELLING = {**FACETED, "resources": {"subscribe": True, "listChanged": True}}
URI = entry()["uri"]


@pytest.fixture(autouse=True)
def _one_listener(monkeypatch):
    """A process of its own for each test, whose reads are done at once."""
    monkeypatch.setattr(subscriptions, "_listener", Listener())
    monkeypatch.setattr(refresh_connectors, "delay", refresh_connectors)
    yield
    stop_listening()


def stop_listening():
    async def stop():
        started = [*(held.task for held in listener().held.values()), listener()._renewing]
        tasks = [task for task in started if task]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    run(lambda _: stop(), 5)


def notification(method, **params):
    message = {"jsonrpc": "2.0", "method": f"notifications/{method}", "params": params}
    return event(json.dumps(message).encode())


class Stream:
    """What a server tells its listeners. It is opened by the first of them."""

    def __init__(self):
        self.ended = 0

    async def body(self):
        self.loop, self.queue = asyncio.get_running_loop(), asyncio.Queue()
        honoured = {"resourceSubscriptions": [URI]}
        yield notification("subscriptions/acknowledged", notifications=honoured)
        try:
            while (said := await self.queue.get()) is not None:
                yield said
        finally:
            self.ended += 1

    def say(self, said):
        """Tell this; None ends the stream."""
        self.loop.call_soon_threadsafe(self.queue.put_nowait, said)

    def reply(self, _):
        return Reply(body=self.body(), content_type="text/event-stream")


@pytest.fixture
def stream():
    return Stream()


@pytest.fixture
def telling(stream):
    """A server that offers subscriptions."""
    with raw_server(capabilities=TELLING) as server:
        publish(server, entry())
        server.on("subscriptions/listen", stream.reply)
        yield server
        stop_listening()  # Before the server goes, which waits for nobody.


def watched(workspace, server, slug="outbound"):
    """A connector whose counts were read a moment ago, in a workspace that somebody looks at."""
    connector = connect(workspace, server, slug)
    read_due()
    keep_watched(workspace)
    return connector


def is_open(connector):
    held = listener().held.get(connector.pk)
    return held is not None and held.is_open


def listening(workspace, server):
    connector = watched(workspace, server)
    sweep_subscriptions()
    wait_until(lambda: is_open(connector))
    return connector


def told(uri=URI):
    return notification("resources/updated", uri=uri)


def test_a_count_that_the_server_says_has_changed_is_read_at_once_though_it_is_fresh(
    acme, telling, stream
):
    listening(acme, telling)
    telling.on("resources/read", lambda _: count(4))
    before = Workspace.objects.get(pk=acme.pk).panel_version
    started = time.monotonic()
    stream.say(told())
    wait_until(lambda: shown(acme) == [("4", DRAFTS, "ok")])
    assert time.monotonic() - started < 1
    assert Workspace.objects.get(pk=acme.pk).panel_version == before + 1
    assert StoredFacet.objects.get().changed_at is None
    (asked,) = telling.seen("subscriptions/listen")
    assert asked.params["notifications"]["resourceSubscriptions"] == [URI]


def test_until_it_is_read_the_shown_count_stays(acme, telling):
    connector = watched(acme, telling)
    assert mark_changed(connector.pk, {URI}, timezone.now())
    assert shown(acme) == [("3", DRAFTS, "ok")]
    telling.on("resources/read", lambda _: Error(-32603, "Not now"))
    read_due()
    assert telling.count("resources/read") == 2
    assert shown(acme) == [("3", DRAFTS, "ok")]
    read_due()
    assert telling.count("resources/read") == 2


def test_what_is_told_during_a_read_is_read_again(acme, telling):
    connector = watched(acme, telling)
    StoredFacet.objects.update(read_at=None)

    def counted(_):
        in_thread(lambda: mark_changed(connector.pk, {URI}, timezone.now())).join(5)
        telling.on("resources/read", lambda _: count(6))
        return count(5)

    telling.on("resources/read", counted)
    read_due()
    assert StoredFacet.objects.get().changed_at is not None
    read_due()
    assert shown(acme) == [("6", DRAFTS, "ok")]


@pytest.mark.requirement("F-058")
def test_list_changed_and_uris_that_are_no_facets_cause_nothing(acme, telling, stream):
    listening(acme, telling)
    asked = len(telling.requests)
    stream.say(notification("resources/list_changed") * 50)
    stream.say(told("acme://nothing") * 50)
    stream.say(told())
    wait_until(lambda: len(telling.requests) > asked)
    assert [each.method for each in telling.requests[asked:]] == ["resources/read"]
    assert telling.count("resources/list") == 1


def test_a_server_that_tells_without_pause_is_read_in_rounds(acme, telling, stream, monkeypatch):
    listening(acme, telling)
    read = telling.count("resources/read")
    stream.say(told() * 2000)
    stream.say(told())
    wait_until(lambda: telling.count("resources/read") == read + 2)
    assert listener().held


@pytest.mark.parametrize(
    ("revisions", "capabilities"),
    [((LEGACY,), TELLING), ((MODERN,), FACETED), ((MODERN,), {"resources": {"subscribe": True}})],
)
def test_who_offers_none_is_of_2025_or_has_no_facets_is_not_listened_to(
    acme, revisions, capabilities
):
    with raw_server(revisions=revisions, capabilities=capabilities) as server:
        publish(server, entry())
        watched(acme, server)
        sweep_subscriptions()
        sweep_subscriptions()
        assert server.count("subscriptions/listen") == 0
    assert listener().held == {}


def test_who_refuses_is_left_alone(acme, telling):
    telling.on("subscriptions/listen", lambda _: Error(-32601, "Method not found"))
    watched(acme, telling)
    sweep_subscriptions()
    wait_until(lambda: Subscription.objects.filter(owner="").exists())
    sweep_subscriptions()
    assert telling.count("subscriptions/listen") == 1
    assert Subscription.objects.get().until > timezone.now() + timedelta(minutes=9)
    assert shown(acme) == [("3", DRAFTS, "ok")]


def test_a_stream_that_ends_is_opened_again_after_a_pause(acme, telling, stream):
    listening(acme, telling)
    stream.say(None)
    wait_until(lambda: Subscription.objects.filter(owner="").exists())
    sweep_subscriptions()
    assert telling.count("subscriptions/listen") == 1
    Subscription.objects.update(until=timezone.now())
    sweep_subscriptions()
    wait_until(lambda: telling.count("subscriptions/listen") == 2)


def test_one_process_listens_and_another_takes_over_when_its_lease_is_over(acme, telling):
    listening(acme, telling)
    assert claim("another", 10, timezone.now()) == []
    later = timezone.now() + timedelta(seconds=31)
    keep_watched(acme)
    assert [each.uris for each in claim("another", 10, later)] == [frozenset({URI})]


def nobody_looks(connector):
    Workspace.objects.update(watched_until=timezone.now())


def disconnected(connector):
    disconnect_connector(connector, by=None)


def another_generation(connector):
    Connector.objects.update(generation=connector.generation + 1)


def another_facet(connector):
    StoredFacet.objects.update(uri="acme://moved")


def another_owner(connector):
    Subscription.objects.update(owner="another")


@pytest.mark.parametrize(
    "happens", [nobody_looks, disconnected, another_generation, another_facet, another_owner]
)
def test_a_stream_that_nobody_wants_any_more_is_closed(acme, telling, stream, happens):
    connector = listening(acme, telling)
    run(lambda _: listener().renew(), 5)
    assert is_open(connector)
    until = Subscription.objects.get().until
    happens(connector)
    run(lambda _: listener().renew(), 5)
    wait_until(lambda: not listener().held)
    # The server notices when it speaks into the closed stream.
    for _ in range(3):
        stream.say(told())
    wait_until(lambda: stream.ended == 1)
    # The lease is let go after the stream, which a disconnect ends by itself.
    wait_until(lambda: Subscription.objects.get().owner != listener().owner)
    kept = Subscription.objects.get()
    if kept.owner:
        assert (kept.owner, kept.until) == ("another", until)
    else:
        # Free for whoever wants it next: a connector that changed waits for no pause.
        connector.refresh_from_db()
        assert kept.until <= timezone.now() or kept.generation != connector.generation


def test_a_connector_that_changed_is_listened_to_anew_and_its_old_connection_ends(
    acme, telling, stream
):
    """The sweep may come before the look at what is still wanted."""
    connector = listening(acme, telling)
    before = listener().held[connector.pk].task
    another_generation(connector)
    sweep_subscriptions()
    wait_until(before.done)
    wait_until(lambda: sessions().keys == [(connector.pk, connector.generation + 1)])
    assert is_open(connector)
    assert claim("another", 10, timezone.now()) == []


def test_a_process_holds_no_more_than_it_has_room_for(acme, telling):
    for slug in ("one", "two", "three"):
        watched(acme, telling, slug)
    assert len(claim("us", 2, timezone.now())) == 2
    assert claim("us", 0, timezone.now()) == []
    assert len(claim("them", 10, timezone.now())) == 1


def test_a_server_that_never_agrees_keeps_nothing_from_being_read(acme, telling):
    telling.on("subscriptions/listen", lambda _: forever())
    connector = watched(acme, telling)
    sweep_subscriptions()
    wait_until(lambda: telling.count("subscriptions/listen") == 1)
    StoredFacet.objects.update(read_at=None)
    read_due()
    assert shown(acme) == [("3", DRAFTS, "ok")]
    assert not is_open(connector)


def test_looking_for_servers_to_listen_to_costs_the_same_whatever_there_is(
    acme, telling, django_assert_num_queries
):
    listening(acme, telling)
    for slug in ("two", "three"):
        watched(acme, telling, slug)
    sweep_subscriptions()
    wait_until(lambda: all(held.is_open for held in listener().held.values()))
    with django_assert_num_queries(1):
        sweep_subscriptions()


def test_the_examples_crm_tells_and_the_overview_follows_within_a_second(acme, tmp_path):
    with ExampleServers(tmp_path) as examples:
        url = examples.start().urls["crm"]
        connector = listening(acme, SimpleNamespace(url=url))
        titles = {title: number for number, title, _ in shown(acme)}
        assert titles["Tasks blocked"] == "2"
        target = targets_of(Connector.objects.all(), timezone.now())[connector.pk]
        called = run(
            lambda sessions: sessions.call_tool(
                target, "resolve_task", {"task_id": 1}, timeout=5, is_repeatable=False
            ),
            10,
        )
        started = time.monotonic()
        assert called["content"][0]["text"].startswith("Resolved")
        wait_until(lambda: ("1", "Tasks blocked", "ok") in shown(acme))
        assert time.monotonic() - started < 1
        assert django_settings.FACET_FRESH_SECONDS == 60
