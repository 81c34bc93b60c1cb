"""Resource arguments of calls through the endpoint: reads that are slow, fail or end."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from connectors import resolution
from connectors.models import Connector
from connectors.protocol.resource_arguments import Limits, Owner, Read
from connectors.sessions import Target
from tests.connectors.outside import (
    MODES,
    delivered,
    eventually,
    install,
    text,
    tool,
    traces,
    words_of,
)
from tests.connectors.resolution.seen import codes, echo, read_uris
from tests.servers.raw import Error, Reply, forever, raw_server


@pytest.mark.requirement("R-143", "D1")
def test_a_repeated_call_reuses_what_was_read(agent, acme, crm):
    with raw_server(
        revisions=("2025-11-25",), capabilities={"tools": {}}, keeps_sessions=True
    ) as mail:
        mail.on("tools/call", text("sent"))
        declared = tool("send", cites={"to": ["crm"]}, annotations={"idempotentHint": True})
        install(acme, "mail", mail.url, listings={"tools": [declared]})
        install(acme, "crm", crm.url, listings={"templates": ["crm://{id}"]})
        agent.call("mail__send")
        mail.sessions.clear()

        agent.call("mail__send", {"to": "crm://1"})

    assert mail.count("tools/call") == 3
    assert read_uris(crm) == ["crm://1"]
    assert codes(mail) == {"crm://1": "ok"}


@pytest.mark.requirement("R-144")
def test_reads_are_made_side_by_side(world, mail, crm):
    async def slow(request):
        await asyncio.sleep(0.1)
        return echo(request)

    crm.on("resources/read", slow)
    uris = [f"crm://signals/{n}" for n in range(32)]

    started = time.monotonic()
    world.call("mail__send", {"to": uris})

    assert time.monotonic() - started < 1.5
    assert list(delivered(mail)) == uris and set(codes(mail).values()) == {"ok"}


@pytest.mark.requirement("R-145")
@pytest.mark.parametrize("limit", ["READ", "TOTAL"])
def test_a_read_that_hangs_costs_itself_alone(world, mail, crm, settings, limit):
    setattr(settings, f"RESOURCE_ARGUMENTS_{limit}_SECONDS", 1)

    async def sometimes(request):
        if request.params["uri"].endswith("/2"):
            await forever()
        return echo(request)

    crm.on("resources/read", sometimes)
    uris = [f"crm://signals/{n}" for n in (1, 2, 3)]

    result = world.call("mail__send", {"to": uris})

    assert words_of(result) == "sent"
    assert list(codes(mail).values()) == ["ok", "not_found", "ok"]


@pytest.mark.requirement("R-146")
@pytest.mark.parametrize("part", ["plan_reads", "resolve", "parse_contents"])
def test_a_failing_resolver_loses_no_call(world, mail, crm, monkeypatch, part):
    from connectors.endpoint import calls

    def fail(*args, **options):
        raise RuntimeError("a bug")

    monkeypatch.setattr(resolution if part == "parse_contents" else calls, part, fail)

    result = world.call("mail__send", {"to": ["crm://signals/1", "mail://1"]})

    assert words_of(result) == "sent"
    assert codes(mail) == {"crm://signals/1": "not_found", "mail://1": "scheme_not_declared"}


@pytest.mark.requirement("R-147")
@pytest.mark.parametrize("mode", MODES)
def test_a_caller_who_goes_away_during_the_reads_ends_the_call(world, mail, crm, mode):
    reading = threading.Event()

    async def hang(request):
        reading.set()
        await forever()

    crm.on("resources/read", hang)

    async def leave(client):
        call = asyncio.ensure_future(client.call_tool("mail__send", {"to": "crm://signals/1"}))
        assert await asyncio.to_thread(reading.wait, 5)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)

    world.talk(leave, mode)

    assert [each.outcome for each in eventually(traces)] == ["cancelled"]
    assert mail.count("tools/call") == 0


@pytest.mark.requirement("R-147")
def test_cancelling_aborts_every_read_under_way(monkeypatch):
    """Those that wait for their turn are not begun."""
    monkeypatch.setattr(resolution, "MAX_PARALLEL", 2)
    aborted = []

    class Hanging:
        async def read_resource(self, target, uri, timeout):
            try:
                await forever()
            finally:
                aborted.append(uri)

    async def cancel():
        plan = {uri: Read(uri, Owner(1)) for uri in ("crm://1", "crm://2", "crm://3")}

        async def grant(reads):
            return reads

        sessions: Any = Hanging()
        work = resolution.resolve(
            sessions, plan, {1: Target(1, 1, "")}, {}, limits=Limits(),
            times=resolution.Times(), grant=grant, doubt=lambda _: None,
        )  # fmt: skip
        task = asyncio.create_task(work)
        for _ in range(5):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(cancel())

    assert sorted(aborted) == ["crm://1", "crm://2"]


@pytest.mark.requirement("D14")
@pytest.mark.parametrize(
    ("down", "is_doubted"),
    [(Reply(503), True), (Reply(401), True), (Reply(429), False), (Error(-32002, "none"), False)],
)
def test_a_read_that_fails_on_its_connection_has_its_owner_looked_at_before_the_call_is_over(
    world, mail, crm, queued, down, is_doubted
):
    """By the rule of every other call: the check is the verdict, and one failed read is none."""
    owner = Connector.objects.get(slug="crm")
    check = ("check_connector", owner.pk)
    crm.on("resources/read", lambda _: down)
    seen = []

    async def answered(_):
        look = asyncio.to_thread(eventually, lambda: check in queued, 5 if is_doubted else 0.3)
        seen.append(await look)
        return text("sent")

    mail.on("tools/call", answered)
    uris = [f"crm://signals/{number}" for number in range(8)]
    assert words_of(world.call("mail__send", {"to": uris})) == "sent"
    assert set(codes(mail).values()) == {"not_found"}
    assert seen == [is_doubted]
    assert Connector.objects.get(slug="crm").connection == "ready"
    assert ("check_connector", Connector.objects.get(slug="mail").pk) not in queued


@pytest.mark.requirement("D14")
def test_reads_of_an_owner_that_has_failed_already_cut_no_pause_short(world, mail, crm, queued):
    Connector.objects.filter(slug="crm").update(connection="failed", check_due_at=None)
    crm.intercept = lambda _: Reply(503)
    world.call("mail__send", {"to": ["crm://signals/1"]})
    traces()
    assert "check_connector" not in {name for name, _ in queued}
    assert Connector.objects.get(slug="crm").check_due_at is None
