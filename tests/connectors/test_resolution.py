"""Resource arguments of calls through the endpoint: owners, outcomes, limits, reach and order.

What is decided without I/O (declarations, strings, templates) is proven in tests/protocol.
"""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from connectors import resolution
from connectors.models import Connector, Secret
from connectors.protocol.resource_arguments import Limits, Owner, Read
from connectors.runtime import claims_of, resource_limits
from connectors.sessions import Target
from tests.connectors.outside import (
    DECLARATION,
    MODES,
    Outside,
    delivered,
    eventually,
    install,
    relist,
    resource,
    text,
    token_for,
    tool,
    traces,
    words_of,
)
from tests.servers.raw import Error, Reply, forever, raw_server
from workspaces.actions import create_workspace


@pytest.fixture
def mail():
    """The server whose tool cites records."""
    with raw_server(capabilities={"tools": {}, "resources": {}}) as server:
        server.on("tools/call", text("sent"))
        yield server


@pytest.fixture
def crm():
    """The server that owns the records, and echoes the URI as a record's text."""
    with raw_server(capabilities={"resources": {}}) as server:
        server.on("resources/read", lambda request: echo(request))
        yield server


def echo(request):
    return resource(request.params["uri"], f"record {request.params['uri']}")


@pytest.fixture
def world(agent, acme, mail, crm):
    """Mail cites crm:// records, and CRM owns crm://signals/{id}."""
    declared = [tool("send", cites={"to": ["crm"]}), "plain"]
    install(acme, "mail", mail.url, listings={"tools": declared})
    install(acme, "crm", crm.url, listings={"templates": ["crm://signals/{id}"]})
    return agent


def codes(server):
    """Code by string of what was delivered last; "ok" for contents."""
    entries = delivered(server) or {}
    for entry in entries.values():
        assert set(entry) in ({"contents"}, {"error"}) and (
            "error" not in entry or set(entry["error"]) == {"code", "message"}
        )
    return {uri: entry.get("error", {"code": "ok"})["code"] for uri, entry in entries.items()}


def read_uris(server):
    return [each.params["uri"] for each in server.seen("resources/read")]


@pytest.mark.requirement("R-001", "R-002", "R-003", "R-004", "R-005")
def test_the_claim_is_what_is_enforced_and_absent_for_a_persons_connector(settings):
    settings.RESOURCE_ARGUMENTS_MAX_CHARS = 10
    settings.RESOURCE_ARGUMENTS_MAX_SIZE = 65
    settings.RESOURCE_ARGUMENTS_MAX_URIS = 3

    limits = resource_limits()
    assert (limits.max_chars, limits.max_size, limits.max_uris) == (10, 65, 3)
    facets = {"ai.nimblebrain/facets": {}}
    assert claims_of(Target(1, 1, "http://x")) == {
        **facets,
        DECLARATION: {"maxChars": 10, "maxSize": 65, "maxUris": 3},
    }
    assert claims_of(Target(1, 1, "http://x", is_personal=True)) == facets


@pytest.mark.requirement("R-001", "R-002", "R-005")
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_a_workspaces_connector_sees_the_claim_in_its_era(agent, acme, revision):
    with raw_server(revisions=(revision,), capabilities={"tools": {}}) as server:
        server.on("tools/call", text("done"))
        install(acme, "crm", server.url, listings={"tools": ["run"]})
        agent.call("crm__run")

    claim = {"maxChars": 49600, "maxSize": 10485760, "maxUris": 32}
    if revision == "2025-11-25":
        [first] = server.seen("initialize")
        capabilities = [first.params["capabilities"]]
    else:
        key = "io.modelcontextprotocol/clientCapabilities"
        capabilities = [each.params["_meta"][key] for each in server.requests]
    for each in capabilities:
        assert each["extensions"][DECLARATION] == claim
        assert each["extensions"]["ai.nimblebrain/facets"] == {}


@pytest.mark.requirement("R-050", "R-030", "R-090", "R-130", "R-133", "R-135", "R-141", "R-149")
@pytest.mark.parametrize("mode", MODES)
def test_the_record_arrives_with_the_call_as_its_owner_gave_it(world, mail, crm, mode):
    uri = "crm://signals/42"
    record = resource(uri, '{"id":42}', mimeType="application/json")
    crm.on("resources/read", record)

    result = world.call("mail__send", {"to": uri, "body": "x"}, mode=mode)

    assert words_of(result) == "sent"
    assert delivered(mail) == {uri: record}
    assert read_uris(crm) == [uri]
    assert mail.seen("tools/call")[0].params["arguments"] == {"to": uri, "body": "x"}


@pytest.mark.requirement("R-149")
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_the_payload_is_the_same_in_both_eras_of_the_server(agent, acme, crm, revision):
    with raw_server(revisions=(revision,), capabilities={"tools": {}}) as mail:
        mail.on("tools/call", text("sent"))
        install(acme, "mail", mail.url, listings={"tools": [tool("send", cites={"to": ["crm"]})]})
        install(acme, "crm", crm.url, listings={"templates": ["crm://{id}"]})

        agent.call("mail__send", {"to": ["crm://1", "mail://2"]})

    assert delivered(mail)["crm://1"] == resource("crm://1", "record crm://1")
    assert codes(mail) == {"crm://1": "ok", "mail://2": "scheme_not_declared"}


@pytest.mark.requirement("R-011", "R-035", "R-020")
def test_the_key_is_absent_where_there_is_nothing_to_carry(world, mail, crm):
    for name, arguments in [
        ("plain", {"to": "crm://signals/1"}),
        ("send", {}),
        ("send", {"to": []}),
        ("send", {"to": {"uri": "crm://signals/1"}}),
        ("send", {"other": "crm://signals/1"}),
    ]:
        world.call(f"mail__{name}", arguments)
        assert delivered(mail) is None
    assert read_uris(crm) == []


@pytest.mark.requirement("R-031", "R-032", "R-033", "R-036", "R-040", "R-042", "R-117")
def test_every_string_has_one_entry_in_the_order_of_the_call(world, mail, crm):
    strings = [
        "mail://1",
        "crm://signals/é",
        "crm://signals/2",
        "",
        "crm://signals/2",
        " crm://x",
        "CRM://signals/2",
        "crm",
        5,
        None,
        {"u": "crm://signals/9"},
        ["crm://signals/8"],
    ]

    world.call("mail__send", {"to": strings})

    assert list(codes(mail).items()) == [
        ("mail://1", "scheme_not_declared"),
        ("crm://signals/é", "not_found"),
        ("crm://signals/2", "ok"),
        ("", "scheme_not_declared"),
        (" crm://x", "scheme_not_declared"),
        ("CRM://signals/2", "ok"),
        ("crm", "scheme_not_declared"),
    ]
    assert sorted(read_uris(crm)) == ["CRM://signals/2", "crm://signals/2"]


@pytest.mark.requirement("D9")
def test_the_uri_is_sent_byte_for_byte(world, mail, crm):
    uris = ["crm://signals/4%2F2", "CRM://signals/42", "crm://signals/%20%C3%A9"]

    world.call("mail__send", {"to": uris})

    assert sorted(read_uris(crm)) == sorted(uris)
    assert list(delivered(mail)) == uris


@pytest.mark.requirement("R-041", "R-110", "R-111", "R-112")
def test_ten_thousand_strings_have_ten_thousand_entries_and_bounded_work(world, mail, crm):
    unowned = [f"crm://other/{n}" for n in range(40)]
    strings = ["x"] * 20 + [f"mail://{n}" for n in range(10_000)] + unowned

    started = time.monotonic()
    world.call("mail__send", {"to": strings})
    assert time.monotonic() - started < 5

    found = codes(mail)
    assert len(found) == 10_041
    assert [found[uri] for uri in unowned] == ["not_found"] * 32 + ["over_limit"] * 8
    assert read_uris(crm) == []


@pytest.mark.requirement("R-110")
def test_the_thirty_third_uri_is_never_read(world, mail, crm):
    uris = [f"crm://signals/{n}" for n in range(33)]

    world.call("mail__send", {"to": uris})

    assert list(codes(mail).values()) == ["ok"] * 32 + ["over_limit"]
    assert sorted(read_uris(crm)) == sorted(uris[:32])


@pytest.mark.requirement("R-113", "R-114", "R-115", "R-116")
def test_size_is_counted_by_what_a_read_may_take(world, mail, crm, settings):
    settings.RESOURCE_ARGUMENTS_MAX_CHARS = 10
    settings.RESOURCE_ARGUMENTS_MAX_SIZE = 65
    crm.on("resources/read", lambda request: Error(-32602, "gone"))
    uris = ["crm://signals/1", "crm://nobody/x", "crm://signals/2", "crm://signals/3"]

    world.call("mail__send", {"to": uris})

    assert list(codes(mail).values()) == ["not_found", "not_found", "not_found", "over_limit"]
    assert sorted(read_uris(crm)) == ["crm://signals/1", "crm://signals/2"]


OUTCOMES = {
    "several entries": ({"contents": [
        {"uri": "crm://a", "text": "1", "_meta": {"x": 1}, "mimeType": None, "more": 2},
        {"uri": "crm://b", "text": ""},
    ]}, [{"uri": "crm://a", "text": "1"}, {"uri": "crm://b", "text": ""}]),
    "empty": ({"contents": []}, "not_found"),
    "a blob": ({"contents": [{"uri": "crm://a", "blob": "AAAA"}]}, "not_text"),
    "text and blob": ({"contents": [{"uri": "crm://a", "text": "x", "blob": "AAAA"}]}, "not_text"),
    "blob and long": ({"contents": [
        {"uri": "a", "text": "x" * 50_000}, {"uri": "b", "blob": "AAAA"}
    ]}, "not_text"),
    "just fits": (resource("a", "😀" * 24_800), [{"uri": "a", "text": "😀" * 24_800}]),
    "too long": (resource("a", "😀" * 24_801), "too_large"),
    "too long together": ({"contents": [
        {"uri": "a", "text": "x" * 49_600}, {"uri": "b", "text": "y"}
    ]}, "too_large"),
    "no resource": ({"contents": [{"text": "no uri"}]}, "not_found"),
    "an error": (Error(-32002, "secret reason"), "not_found"),
    "garbage": (Reply(body=b"["), "not_found"),
    "a refusal": (Reply(401), "not_found"),
    "asks back": ({"resultType": "input_required", "contents": []}, "not_found"),
}  # fmt: skip


@pytest.mark.requirement("R-091", "R-092", "R-093", "R-094", "R-095", "R-096", "R-097", "R-098")
@pytest.mark.requirement("R-099", "R-100", "R-101", "R-102", "R-103")
@pytest.mark.parametrize("name", OUTCOMES)
def test_what_the_owner_answers_decides_the_entry(world, mail, crm, name):
    answer, expected = OUTCOMES[name]
    crm.on("resources/read", lambda request: answer)
    uri = "crm://signals/1"

    world.call("mail__send", {"to": uri})

    if isinstance(expected, str):
        assert codes(mail) == {uri: expected}
        assert "secret reason" not in str(delivered(mail)) and "AAAA" not in str(delivered(mail))
    else:
        assert delivered(mail) == {uri: {"contents": expected}}


@pytest.mark.requirement("R-094")
def test_every_way_not_to_find_has_the_same_words(world, mail, crm):
    crm.on("resources/read", lambda request: Error(-32603, "broken"))

    world.call("mail__send", {"to": ["crm://signals/1", "crm://nobody/1"]})

    first, second = delivered(mail).values()
    assert first == second


@pytest.mark.requirement("R-102")
def test_text_is_not_followed(world, mail, crm):
    crm.on("resources/read", resource("crm://signals/1", "see crm://signals/2 and files://x"))

    world.call("mail__send", {"to": "crm://signals/1"})

    assert read_uris(crm) == ["crm://signals/1"]


@pytest.mark.requirement("R-052", "R-054", "R-060", "D8")
def test_two_claimants_are_ambiguous_and_neither_is_read(world, acme, mail, crm):
    install(acme, "copy", crm.url, listings={"templates": ["crm://signals/{other}"]})

    world.call("mail__send", {"to": "crm://signals/1"})

    assert codes(mail) == {"crm://signals/1": "ambiguous"}
    assert read_uris(crm) == []


@pytest.mark.requirement("R-060", "R-059", "R-053", "R-057", "R-067")
def test_the_caller_may_own_and_may_make_ambiguous(agent, acme, mail, crm):
    mail.on("resources/read", echo)
    templates = ["crm://mine/{id}", "crm://mine/{+rest}", "crm://fixed", "crm://both/{x}"]
    install(
        acme,
        "mail",
        mail.url,
        listings={"tools": [tool("send", cites={"to": ["crm"]})], "templates": templates},
    )
    install(acme, "crm", crm.url, listings={"templates": ["crm://theirs/{id}", "crm://both/{y}"]})

    uris = ["crm://mine/1", "crm://fixed", "crm://theirs/1", "crm://both/1"]
    agent.call("mail__send", {"to": uris})

    assert list(codes(mail).values()) == ["ok", "ok", "ok", "ambiguous"]
    assert sorted(read_uris(mail)) == ["crm://fixed", "crm://mine/1"]
    assert read_uris(crm) == ["crm://theirs/1"]


@pytest.mark.requirement("R-062", "R-063", "R-068", "D8")
@pytest.mark.parametrize(
    ("facts", "alone", "beside"),
    [
        ({"connection": "failed"}, "not_found", "ambiguous"),
        ({"connection": "starting"}, "not_found", "ambiguous"),
        ({"credential_refused_at": "2026-01-01T00:00Z"}, "not_found", "ambiguous"),
        ({"sign_in_needed": True}, "not_found", "ambiguous"),
        ({"required": [{"kind": "bearer", "name": "Token"}]}, "not_found", "ambiguous"),
        ({"asked_at": None, "connection": "idle"}, "not_found", "ok"),
    ],
)
def test_whoever_is_not_at_rest_counts(agent, acme, mail, crm, facts, alone, beside):
    install(acme, "mail", mail.url, listings={"tools": [tool("send", cites={"to": ["crm"]})]})
    install(acme, "other", crm.url, listings={"templates": ["crm://{id}"]}, **facts)

    agent.call("mail__send", {"to": "crm://1"})
    assert codes(mail) == {"crm://1": alone}
    assert read_uris(crm) == []

    install(acme, "crm", crm.url, listings={"templates": ["crm://{id}"]})
    agent.call("mail__send", {"to": "crm://1"})
    assert codes(mail) == {"crm://1": beside}


@pytest.mark.requirement("R-051", "R-055", "R-056", "R-061", "R-064", "R-079", "R-081", "R-082")
def test_only_a_template_of_this_workspace_is_a_claim(agent, acme, other, alice, mail, crm):
    install(acme, "mail", mail.url, listings={"tools": [tool("send", cites={"to": ["crm"]})]})
    broken = ["crm://{id", "crm://{!x}", {"uriTemplate": 5}, "crm://" + "x" * 20_000 + "{id}"]
    install(acme, "broken", crm.url, listings={"templates": broken})
    install(acme, "lister", crm.url, listings={"resources": [{"uri": "crm://1", "name": "one"}]})
    install(other, "theirs", crm.url, listings={"templates": ["crm://{id}"]})
    install(alice, "own", crm.url, listings={"templates": ["crm://{id}"]})

    agent.call("mail__send", {"to": "crm://1"})
    assert codes(mail) == {"crm://1": "not_found"}
    assert read_uris(crm) == []

    crm_record = install(acme, "crm", crm.url, listings={"templates": ["crm://{id}"]})
    agent.call("mail__send", {"to": "crm://1"})
    assert codes(mail) == {"crm://1": "ok"}

    install(acme, "greedy", crm.url, listings={"templates": ["{+uri}"]})
    agent.call("mail__send", {"to": "crm://1"})
    assert codes(mail) == {"crm://1": "ambiguous"}
    relist(crm_record, "templates", [])
    agent.call("mail__send", {"to": "crm://1"})
    assert codes(mail) == {"crm://1": "ok"}


@pytest.mark.requirement("R-065", "R-066")
def test_the_hosts_own_schemes_are_never_resolved(agent, acme, mail, crm):
    schemes = ["files", "UI", "skill", "artifact", "conversation"]
    install(acme, "mail", mail.url, listings={"tools": [tool("send", cites={"to": schemes})]})
    templates = [f"{each.lower()}://{{id}}" for each in schemes] + ["{+uri}"]
    install(acme, "crm", crm.url, listings={"templates": templates})

    uris = [f"{each}://1" for each in [*schemes, "Files", "mail"]]
    agent.call("mail__send", {"to": uris})

    assert list(codes(mail).values()) == ["not_found"] * 6 + ["scheme_not_declared"]
    assert read_uris(crm) == []


@pytest.mark.requirement("R-131", "R-132", "R-134")
@pytest.mark.parametrize(
    ("allowed", "code"),
    [
        (["mail__send"], "not_found"),
        (["mail__*", "read_mcp_resource"], "not_found"),
        (["mail__*", "nb__read_resource"], "ok"),
        (["mail__*", "nb__*"], "ok"),
        (["*"], "ok"),
        (None, "ok"),
    ],
)
def test_a_tasks_reach_is_that_of_its_own_read(site, world, acme, alice, mail, crm, allowed, code):
    task = Outside(site, "acme", token_for(acme, alice, allowed_tools=allowed))
    uris = ["crm://signals/1", "crm://nobody", "mail://1"] + [f"crm://x/{n}" for n in range(40)]

    task.call("mail__send", {"to": uris})

    found = list(codes(mail).values())
    assert found[:3] == [code, "not_found", "scheme_not_declared"]
    assert ("over_limit" in found) is (code == "ok")
    assert len(read_uris(crm)) == (code == "ok")


@pytest.mark.requirement("R-140", "F-087")
def test_the_owner_sees_the_workspaces_credential_and_nothing_of_the_caller(
    agent, acme, alice, mail, crm
):
    install(acme, "mail", mail.url, listings={"tools": [tool("send", cites={"to": ["crm"]})]})
    secret = Secret(kind="bearer", name="Token", value="workspace-credential")
    install(acme, "crm", crm.url, secrets=[secret], listings={"templates": ["crm://{id}"]})

    agent.call("mail__send", {"to": "crm://1"}, meta={"vendor/member": alice.email})

    [read] = crm.seen("resources/read")
    assert read.headers["authorization"] == "Bearer workspace-credential"
    seen = str(read.message) + str(read.headers)
    for hint in ["alice", "Alice", "send", "mail", "vendor/member", agent.token]:
        assert hint not in seen


@pytest.mark.requirement("R-142")
def test_a_refused_call_makes_no_read(site, world, acme, alice, crm, mail):
    task = Outside(site, "acme", token_for(acme, alice, allowed_tools=["nb__*"]))
    assert task.call("mail__send", {"to": "crm://signals/1"}).is_error
    assert world.post(
        "tools/call", {"name": "mail__send", "arguments": ["crm://signals/1"]}
    ).json()["error"]

    assert read_uris(crm) == [] and mail.count("tools/call") == 0


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


def test_one_workspace_never_serves_another(site, world, alice, mail, crm):
    second = create_workspace("second", "Second", admin=alice)
    declared = [tool("send", cites={"to": ["crm"]})]
    install(second, "mail", mail.url, listings={"tools": declared})

    Outside(site, "second", token_for(second, alice)).call("mail__send", {"to": "crm://signals/1"})

    assert codes(mail) == {"crm://signals/1": "not_found"}
    assert read_uris(crm) == []
