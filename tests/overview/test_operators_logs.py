"""Log lines can be found by one number, from the answer to the task, and hold no secret."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import queue
import uuid
from typing import Any

import pytest
import structlog
from asgiref.sync import sync_to_async
from celery import shared_task
from django.conf import settings as configured
from django.db import connections
from django.test import AsyncClient, Client

from connectors.actions import add_connector, connect_connector
from connectors.models import Connector, Secret, SecretKind
from connectors.runtime import close_runtime
from connectors.tasks import check_connector
from overview import fragments
from overview.refresh import refresh
from tests.connectors.outside import Outside, install, site_on_a_port, token_for, tool
from tests.overview.factories import entry
from tests.servers.raw import Error, raw_server
from workspaces.sign_in_links import sign_in_path

MARKER = "mArKeR-7f3c"
logger = logging.getLogger(__name__)


class Lines(io.StringIO):
    """Everything that is logged from now on, at every level that the settings let through."""

    def parsed(self):
        return [json.loads(line) for line in self.getvalue().splitlines()]

    def of(self, event):
        return [line for line in self.parsed() if line["event"] == event]


@pytest.fixture
def lines():
    written = Lines()
    formatter = configured.LOGGING["formatters"]["line"]
    *processors, _ = formatter["processors"]
    handler = logging.StreamHandler(written)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[*processors, structlog.processors.JSONRenderer()],
            foreign_pre_chain=formatter["foreign_pre_chain"],
        )
    )
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield written
    root.removeHandler(handler)
    root.setLevel(level)


def test_every_answer_has_the_number_of_its_log_lines(alice_client, lines):
    answer = alice_client.get("/w/acme/?q=1")
    number = answer["X-Request-ID"]
    assert uuid.UUID(number)
    (finished,) = lines.of("request_finished")
    assert (finished["request_id"], finished["request"]) == (number, "GET /w/acme/")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_async", [False, True])
def test_an_error_page_shows_the_number_that_its_traceback_has(
    alice, acme, lines, monkeypatch, is_async
):
    def fail(*_):
        raise RuntimeError("broken")

    monkeypatch.setattr(fragments, "overview_of", fail)
    client: Any = (AsyncClient if is_async else Client)(raise_request_exception=False)
    client.force_login(alice, backend="django.contrib.auth.backends.ModelBackend")
    answer = asyncio.run(_get(client)) if is_async else client.get("/w/acme/")
    number = answer["X-Request-ID"]
    assert answer.status_code == 500
    assert number in answer.content.decode()
    (failed,) = lines.of("request_failed")
    assert failed["request_id"] == number
    assert "RuntimeError: broken" in failed["exception"]


def test_that_somebody_may_not_do_a_thing_is_told_without_a_traceback(bob_client, lines):
    assert bob_client.get("/w/acme/connectors/add/").status_code == 403
    (refused,) = [line for line in lines.parsed() if line["logger"] == "django.request"]
    assert refused["status_code"] == 403
    assert "exception" not in refused


async def _get(client):
    answer = await client.get("/w/acme/")
    # The test client leaves the connection of its thread open.
    await sync_to_async(connections.close_all)()
    return answer


said: queue.Queue[int] = queue.Queue()


@shared_task
def say_something(number):
    logger.warning("something")
    said.put(number)


# The worker sets logging up anew when it starts.
def test_a_task_has_its_own_number_and_that_of_the_request_that_queued_it(worker, lines):
    with structlog.contextvars.bound_contextvars(request_id="of-the-request"):
        queued = say_something.delay(1)
    alone = say_something.delay(2)
    assert {said.get(timeout=10), said.get(timeout=10)} == {1, 2}
    found = {line["task_id"]: line for line in lines.of("something")}
    assert found[queued.id]["request_id"] == "of-the-request"
    assert "request_id" not in found[alone.id]
    assert all(line["task"].endswith("say_something") for line in found.values())


def test_no_secret_and_no_content_reaches_the_log_or_a_span(
    acme, alice, lines, transactional_db, recorded
):
    """Plant a marker wherever a secret or a content passes, and look for it in every line."""
    link = sign_in_path(alice)
    assert Client().get(link).status_code == 302
    assert Client().get(link).status_code == 410
    Client().get(f"/oauth/callback/?code={MARKER}&state={MARKER}")
    Client().post("/sign-in/", {"email": "alice@example.com", "password": MARKER})
    facets = {"resources": {}, "extensions": {"ai.nimblebrain/facets": {}}}
    with raw_server(capabilities={**facets, "tools": {}}) as server, site_on_a_port() as site:
        server.on("resources/list", {"resources": [entry("a"), entry("b")]})
        server.on("resources/read", _secretive)
        server.on("tools/call", lambda request: Error(-32603, MARKER, {"text": MARKER}))
        _read_with_a_secret(acme, server)
        install(
            acme,
            "mail",
            server.url,
            listings={
                "tools": [tool("send", cites={"files": ["crm"]})],
                "templates": ["crm://{+id}"],
            },
        )
        agent = Outside(site, "acme", token_for(acme, alice))
        agent.call("mail__send", {"files": [f"crm://{MARKER}"], "text": MARKER})
        Outside(site, "acme", MARKER).post()
    close_runtime()
    assert lines.of("request_finished")
    assert recorded.named("resource argument") and recorded.named("facet read")
    for secret in [MARKER, agent.token, link.rsplit("/", 2)[1]]:
        said = [*lines.getvalue().splitlines(), *recorded.texts()]
        assert [line for line in said if secret in line] == []


def _secretive(request):
    uri = request.params["uri"]
    if uri.endswith("b"):
        return Error(-32603, f"no {MARKER}")
    return {"contents": [{"uri": uri, "mimeType": "application/json", "text": MARKER}]}


def _read_with_a_secret(workspace, server):
    connector = Connector(workspace=workspace, slug="a", name="A", url=f"{server.url}?key={MARKER}")
    add_connector(connector, [Secret(kind=SecretKind.BEARER, name="", value=MARKER)], by=None)
    connect_connector(connector, by=None)
    check_connector(connector.pk)
    refresh([connector.pk])
    assert server.count("resources/read") == 2
