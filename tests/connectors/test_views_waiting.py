"""Slow servers hold half of the turns of a web process at most."""

from __future__ import annotations

import asyncio
import threading
from uuid import uuid4

import pytest

from connectors.runtime import close_runtime
from connectors.views import waiting
from tests.connectors.outside import install, text, tool
from tests.overview.served import in_thread, wait_until
from tests.servers.raw import raw_server

pytestmark = pytest.mark.django_db(transaction=True)

CALL = "/w/acme/tools/call/?name=crm__look"
CONNECTOR = "/w/acme/connectors/crm/"


def test_when_pages_wait_for_servers_in_all_slots_one_more_is_told_so_and_others_are_served(
    acme, alice_client, bob_client, queued, monkeypatch
):
    monkeypatch.setattr(waiting, "_slots", threading.BoundedSemaphore(1))
    is_over, answers = threading.Event(), []

    async def answered(_):
        await asyncio.to_thread(is_over.wait, 10)
        return text("done")

    with raw_server(capabilities={"tools": {}}) as server:
        server.on("tools/call", answered)
        reads = {"annotations": {"readOnlyHint": True}}
        install(acme, "crm", server.url, listings={"tools": [tool("look", **reads)]})
        calling = in_thread(lambda: answers.append(bob_client.post(CALL, {"once": uuid4()})))
        wait_until(lambda: server.count("tools/call") == 1)
        for path in (CALL, f"{CONNECTOR}diagnosis/", f"{CONNECTOR}sign-in/"):
            refused = alice_client.post(path, {"once": uuid4()})
            assert (refused.status_code, refused["Retry-After"]) == (503, "10")
            assert "Nothing was sent" in refused.content.decode()
        assert alice_client.get(CALL).status_code == 200
        is_over.set()
        calling.join(10)
        assert "done" in answers[0].content.decode()
        assert "done" in alice_client.post(CALL, {"once": uuid4()}).content.decode()
    close_runtime()
