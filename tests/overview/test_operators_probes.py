"""`/healthz`, `/readyz` and `/metrics`, as the machines that ask for them see them."""

from __future__ import annotations

import asyncio
import json
import threading
from datetime import timedelta

import pytest
from asgiref.testing import ApplicationCommunicator
from django.core.cache import cache
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from connectors.models import Caller, Outcome
from connectors.traces import Event, Trace, write_traces
from overview import asgi
from overview.asgi import application
from overview.consumers import open_sockets
from overview.models import StoredFacet
from overview.operators import health
from overview.operators.health import worker_heard
from overview.operators.probes import Probes
from overview.operators.stopping import Stopping
from overview.refresh import refresh
from overview.tasks import sweep_facets
from tests.overview.factories import entry, make_connector
from tests.servers.raw import Error, raw_server
from workspaces import tallies
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db(transaction=True)
TOKEN = "scrape-me"


@pytest.fixture(autouse=True)
def _fresh(settings, monkeypatch):
    """No worker has been heard, and nothing that an earlier test saw is shared."""
    cache.clear()
    monkeypatch.setattr(asgi, "probes", Probes(Stopping()))
    # Another process would ask by the address of this one.
    settings.ALLOWED_HOSTS = ["overview.example.com"]
    settings.SECURE_SSL_REDIRECT = True


def ask(path, method="GET", **headers):
    """The status and the body of an answer."""
    return asyncio.run(_ask(path, method, headers))


async def _ask(path, method, headers):
    scope = {
        "type": "http",
        "path": path,
        "method": method,
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    peer = ApplicationCommunicator(application, scope)
    await peer.send_input({"type": "http.request"})
    start = await peer.receive_output(5)
    body = await peer.receive_output(5)
    return start["status"], body["body"].decode()


def scrape():
    """The samples by name and labels."""
    status, body = ask("/metrics", authorization=f"Bearer {TOKEN}")
    assert status == 200
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(body)
        for sample in family.samples
    }


def test_alive_asks_no_database(django_assert_num_queries):
    with django_assert_num_queries(0):
        assert ask("/healthz") == (200, "alive\n")
    assert ask("/healthz", "HEAD") == (200, "")
    assert ask("/healthz", "POST")[0] == 405


def test_ready_when_every_part_answers_and_a_worker_was_heard():
    sweep_facets()
    status, body = ask("/readyz", host="10.0.0.7:8000")
    assert (status, json.loads(body)) == (
        200,
        {
            "status": "ok",
            "failed": [],
            "parts": dict.fromkeys(["database", "broker", "channel_layer", "worker"], "ok"),
        },
    )


def test_not_ready_says_which_part_failed():
    status, body = ask("/readyz")
    assert (status, json.loads(body)["failed"]) == (503, ["worker"])


def test_a_process_is_ready_for_a_proxy_whatever_part_of_the_host_is_away(
    django_assert_num_queries,
):
    with django_assert_num_queries(0):
        assert ask("/readyz/process") == (200, "ready\n")


def test_a_process_that_stops_says_so_and_is_alive(monkeypatch):
    worker_heard()
    stopping = Stopping()
    stopping.has_begun = True
    monkeypatch.setattr(asgi, "probes", Probes(stopping))
    assert ask("/readyz/process") == (503, "stopping\n")
    status, body = ask("/readyz")
    assert (status, json.loads(body)["status"]) == (503, "stopping")
    assert ask("/healthz")[0] == 200


def test_a_part_that_fails_says_nothing_of_its_address(monkeypatch, caplog):
    worker_heard()

    def fail():
        raise ConnectionError("postgresql://overview:hunter2@db/overview")

    monkeypatch.setattr(health, "_database", fail)
    status, body = ask("/readyz")
    assert (status, json.loads(body)["failed"]) == (503, ["database"])
    assert "hunter2" not in body + caplog.text


def test_a_part_that_hangs_fails_in_time_and_is_asked_once_for_all_who_wait(monkeypatch):
    worker_heard()
    asked, ended = [], threading.Event()

    def hang():
        asked.append(1)
        ended.wait(5)

    monkeypatch.setattr(health, "_database", hang)
    monkeypatch.setattr(health, "PART_SECONDS", 0.2)

    async def crowd():
        return await asyncio.gather(*(_ask("/readyz", "GET", {}) for _ in range(5)))

    try:
        assert {status for status, _ in asyncio.run(crowd())} == {503}
    finally:
        ended.set()
    assert len(asked) == 1


def test_metrics_are_off_until_there_is_a_token_and_then_for_its_owner_alone(settings):
    assert ask("/metrics")[0] == 404
    settings.METRICS_TOKEN = TOKEN
    assert ask("/metrics")[0] == 401
    assert ask("/metrics", authorization="Bearer scrape")[0] == 401
    assert ask("/metrics", authorization=f"Bearer {TOKEN}")[0] == 200


def test_nothing_is_counted_while_metrics_are_off(settings):
    tallies.count("facet_reads", "counted")
    tallies.flush()
    settings.METRICS_TOKEN = TOKEN
    before = scrape().get(("overview_facet_reads_total", "counted"), 0)
    tallies.count("facet_reads", "counted")
    assert scrape()[("overview_facet_reads_total", "counted")] == before + 1


def test_reads_are_counted_by_outcome_and_by_how_long_they_took(settings, acme):
    settings.METRICS_TOKEN = TOKEN
    before = scrape()
    capabilities = {"resources": {}, "extensions": {"ai.nimblebrain/facets": {}}}
    with raw_server(capabilities=capabilities) as server:
        server.on("resources/list", {"resources": [entry("a"), entry("b"), entry("c")]})

        def read(request):
            uri = request.params["uri"]
            if uri.endswith("c"):
                return Error(-32603, "broken")
            body = '{"count": 3}' if uri.endswith("a") else "no count"
            contents = {"uri": uri, "mimeType": "application/json", "text": body}
            return {"contents": [contents]}

        server.on("resources/read", read)
        refresh([make_connector(acme, url=server.url).pk])
    after = scrape()

    def more(*key):
        return after.get(key, 0) - before.get(key, 0)

    assert more("overview_facet_reads_total", "counted") == 1
    assert more("overview_facet_reads_total", "invalid") == 1
    assert more("overview_facet_reads_total", "remote") == 1
    assert more("overview_facet_listings_total", "listed") == 1
    assert more("overview_facet_read_seconds_count") == 3
    assert more("overview_facet_read_seconds_bucket", "+Inf") == 3
    assert after[("overview_connectors", "ready")] == 1
    assert after[("overview_connectors", "failed")] == 0


def test_calls_of_outside_clients_are_counted_when_their_traces_are_written(settings, acme, bob):
    settings.METRICS_TOKEN = TOKEN
    before = scrape()
    trace = Trace(acme.pk, Caller.OUTSIDE, bob.pk, None, "send", timezone.now())
    trace.events = [Event("crm://1", 5, "ok"), Event("crm://2", 5, "not_found")]
    trace.end(Outcome.OK)
    write_traces([trace])
    after = scrape()
    for key in [
        ("overview_endpoint_calls_total", "ok"),
        ("overview_resource_arguments_total", "ok"),
        ("overview_resource_arguments_total", "not_found"),
    ]:
        assert after[key] - before.get(key, 0) == 1


def test_the_oldest_due_count_is_one_that_somebody_waits_for(settings, acme):
    settings.METRICS_TOKEN = TOKEN
    now = timezone.now()
    long_ago = now - timedelta(hours=1)
    connector = make_connector(acme, connection_since=long_ago, created_at=long_ago)
    for name, age_seconds in [("a", 90), ("b", 80), ("c", 10)]:
        StoredFacet.objects.create(
            connector=connector,
            name=name,
            name_digest=name,
            uri=name,
            title=name,
            level="info",
            position=0,
            epoch=1,
            count="1",
            read_at=now - timedelta(seconds=age_seconds),
        )
    assert scrape()[("overview_oldest_due_count_seconds",)] == 0
    Workspace.objects.update(watched_until=now + timedelta(minutes=1))
    assert 90 <= scrape()[("overview_oldest_due_count_seconds",)] < 95


def test_open_pages_are_a_level_of_this_process(settings):
    settings.METRICS_TOKEN = TOKEN
    tallies.flush({"open_sockets": 3})
    assert scrape()[("overview_open_sockets",)] == 3
    tallies.flush({"open_sockets": 0})
    assert scrape()[("overview_open_sockets",)] == 0
    assert len(open_sockets) == 0


def test_a_scrape_costs_the_same_whatever_the_host_holds(
    settings, acme, django_assert_max_num_queries
):
    settings.METRICS_TOKEN = TOKEN
    from overview.operators.metrics import exposition

    with django_assert_max_num_queries(3):
        exposition()
    for number in range(5):
        make_connector(acme, slug=f"more-{number}")
    with django_assert_max_num_queries(3):
        exposition()
