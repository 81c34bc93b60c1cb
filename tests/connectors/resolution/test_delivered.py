"""Resource arguments of calls through the endpoint: what arrives with the call.

What is decided without I/O (declarations, strings, templates) is proven in tests/protocol.
"""

from __future__ import annotations

import time

import pytest

from connectors.runtime import claims_of, resource_limits
from connectors.sessions import Target
from tests.connectors.outside import (
    DECLARATION,
    MODES,
    delivered,
    install,
    resource,
    text,
    tool,
    words_of,
)
from tests.connectors.resolution.seen import codes, read_uris
from tests.servers.raw import Error, Reply, raw_server


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
