"""Which tools outside clients find at the endpoint, and under which names, in both eras."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError
from mcp.shared.exceptions import MCPError

from tests.connectors.outside import (
    DECLARATION,
    MODES,
    Outside,
    install,
    relist,
    token_for,
    tool,
    tool_server,
    traces,
    words_of,
)
from workspaces.models import Membership


@pytest.fixture
def server():
    with tool_server() as running:
        yield running


def listed(agent, mode="auto"):
    """The entries of tools/list by name, as they travel."""

    async def entries(client):
        return (await client.list_tools()).tools

    found = agent.talk(entries, mode)
    return {each.name: each.model_dump(by_alias=True, exclude_none=True) for each in found}


@pytest.mark.parametrize("mode", MODES)
def test_a_tool_is_listed_and_called_under_its_connectors_name(agent, acme, server, mode):
    install(acme, "crm", server.url, listings={"tools": ["lookup"]})

    assert agent.names(mode) == ["nb__read_resource", "crm__lookup"]
    result = agent.call("crm__lookup", {"id": "7"}, mode=mode)

    assert (words_of(result), result.is_error) == ("done", False)
    [sent] = server.seen("tools/call")
    assert (sent.params["name"], sent.params["arguments"]) == ("lookup", {"id": "7"})


def test_lists_come_from_what_is_stored_in_a_stable_order(agent, acme):
    install(acme, "mail", listings={"tools": ["send", "archive"]})
    install(acme, "crm", listings={"tools": ["zeta", "alpha"]})

    names = ["nb__read_resource", "crm__zeta", "crm__alpha", "mail__send", "mail__archive"]
    assert agent.names() == agent.names("legacy") == names


def test_only_ready_connectors_offer_tools(agent, acme):
    install(acme, "ready", listings={"tools": ["run"]})
    install(acme, "failed", connection="failed", listings={"tools": ["run"]})
    install(acme, "resting", asked_at=None, listings={"tools": ["run"]})
    install(acme, "refused", credential_refused_at="2026-01-01T00:00Z", listings={"tools": ["run"]})

    assert agent.names() == ["nb__read_resource", "ready__run"]


@pytest.mark.parametrize("mode", MODES)
def test_a_connector_that_is_not_ready_is_a_clear_error(agent, acme, mode):
    install(acme, "crm", connection="failed", listings={"tools": ["lookup"]})

    result = agent.call("crm__lookup", mode=mode)

    assert result.is_error
    assert words_of(result) == "Crm is not ready: Failed."
    assert [(each.outcome, each.connector_name) for each in traces()] == [("refused", "Crm")]


@pytest.mark.parametrize("mode", MODES)
def test_an_unknown_tool_is_refused(agent, acme, other, carol, mode):
    install(other, "theirs", listings={"tools": ["run"]})

    for name in ["theirs__run", "nope", "crm__", "__", "", "x" * 10_000, "list_mcp_resources"]:
        with pytest.raises(MCPError, match="Unknown tool"):
            agent.call(name, mode=mode)


def test_a_tool_that_no_model_may_see_is_hidden_and_refused(agent, acme, server):
    hidden = {"_meta": {"ui": {"visibility": ["app"]}}}
    shown = {"_meta": {"ui": {"visibility": ["model", "app"]}}}
    tools = [tool("hidden", **hidden), tool("shown", **shown)]
    install(acme, "crm", server.url, listings={"tools": tools})

    assert agent.names() == ["nb__read_resource", "crm__shown"]
    with pytest.raises(MCPError, match="Unknown tool"):
        agent.call("crm__hidden")
    assert server.count("tools/call") == 0


@pytest.mark.requirement("R-021", "R-018")
@pytest.mark.parametrize("mode", MODES)
def test_a_schema_is_handed_on_as_it_is_but_for_headers(agent, acme, mode):
    schema = {
        "type": "object",
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region", "default": None},
            "x-mcp-header": {"type": "string"},
            "deep": {"anyOf": [{"type": "string", "x-mcp-header": "Deep"}, {"type": "null"}]},
        },
        "required": ["region"],
        "$defs": {"a": {"const": {"x-mcp-header": 1}}},
        "x-vendor": [1, None],
    }
    declared = tool("send", cites={"to": ["crm"]}, inputSchema=schema)
    install(acme, "mail", listings={"tools": [declared]})

    entry = listed(agent, mode)["mail__send"]

    del schema["properties"]["region"]["x-mcp-header"]
    del schema["properties"]["deep"]["anyOf"][0]["x-mcp-header"]
    assert entry["inputSchema"] == schema
    assert entry["_meta"] == {DECLARATION: {"arguments": {"to": {"schemes": ["crm"]}}}}


@pytest.mark.requirement("F-035")
def test_a_broken_entry_costs_itself_alone(agent, acme):
    broken = [{"name": 5}, 7, None, {"name": "no-schema"}, tool("bad", title=7)]
    install(acme, "crm", listings={"tools": [*broken, tool("good"), tool("good")]})

    for mode in MODES:
        assert agent.names(mode) == ["nb__read_resource", "crm__good"]


def test_a_long_name_is_bounded_and_leads_to_its_own_tool(agent, acme, server):
    long = [f"{'t' * 300}{number}" for number in range(3)]
    install(acme, "crm", server.url, listings={"tools": long})

    names = agent.names()[1:]
    assert len(set(names)) == 3 and all(len(name) == 128 for name in names)
    for name in names:
        agent.call(name)
    assert [each.params["name"] for each in server.seen("tools/call")] == long


def test_no_connector_can_pass_for_the_host_for_another_or_for_a_persons_own(
    agent, acme, alice, server
):
    with pytest.raises(ValidationError, match="reserved"):
        install(acme, "nb", server.url, listings={"tools": ["read_resource", "other"]})
    install(acme, "my", server.url, listings={"tools": ["crm__run", "_crm__run"]})
    install(acme, "crm", server.url, listings={"tools": ["_run", "__run"]})
    install(alice, "crm", server.url, listings={"tools": ["run", "_run"]})

    names = agent.names()
    assert len(names) == len(set(names))
    assert words_of(agent.call("nb__read_resource", {"uri": "crm://1"})).startswith("No connector")
    for name, meant in [
        ("my__crm__run", "crm__run"),
        ("my___crm__run", "_crm__run"),
        ("crm___run", "_run"),
        ("my_crm__run", "run"),
    ]:
        agent.call(name)
        assert server.seen("tools/call")[-1].params["name"] == meant


@pytest.mark.requirement("R-003", "R-139", "R-061", "F-013")
def test_a_persons_own_connector_is_reachable_for_that_person_only(
    agent, site, acme, bob, alice, server
):
    install(
        alice,
        "notes",
        server.url,
        listings={
            "tools": [tool("send", cites={"to": ["crm"]})],
            "templates": ["crm://{id}"],
            "resources": [{"uri": "notes://1", "name": "note"}],
        },
    )
    install(acme, "mail", server.url, listings={"tools": [tool("send", cites={"to": ["crm"]})]})

    assert agent.names() == ["nb__read_resource", "mail__send", "my_notes__send"]
    bobs = Outside(site, "acme", token_for(acme, bob))
    assert bobs.names() == ["nb__read_resource", "mail__send"]
    with pytest.raises(MCPError, match="Unknown tool"):
        bobs.call("my_notes__send")

    forged = {DECLARATION: {"crm://1": {"contents": []}}}
    agent.call("my_notes__send", {"to": "crm://1"}, meta=forged)
    assert DECLARATION not in server.seen("tools/call")[-1].params.get("_meta", {})
    agent.call("mail__send", {"to": "crm://1"})
    entry = server.seen("tools/call")[-1].params["_meta"][DECLARATION]["crm://1"]
    assert entry["error"]["code"] == "not_found"
    assert server.count("resources/read") == 0

    async def resources(client):
        return (await client.list_resources()).resources

    assert agent.talk(resources) == []


def test_a_tokens_list_of_tools_is_its_reach(site, acme, alice, server):
    install(acme, "crm", server.url, listings={"tools": ["find", "delete"]})
    install(acme, "mail", server.url, listings={"tools": ["send"]})
    task = Outside(site, "acme", token_for(acme, alice, allowed_tools=["crm__f*", "mail__*"]))

    assert task.names() == ["crm__find", "mail__send"]
    assert words_of(task.call("crm__find")) == "done"
    refused = task.call("crm__delete")
    assert refused.is_error and "may not call crm__delete" in words_of(refused)
    assert task.call("nb__read_resource", {"uri": "x://1"}).is_error
    assert server.count("tools/call") == 1
    assert [each.caller for each in traces()] == ["task"] * 3


@pytest.mark.requirement("R-019")
def test_a_listing_that_another_process_stored_rules_the_next_call(agent, acme, server):
    mail = install(acme, "mail", server.url, listings={"tools": ["send"]})
    agent.call("mail__send", {"to": "crm://1"})
    assert DECLARATION not in server.seen("tools/call")[-1].params.get("_meta", {})

    relist(mail, "tools", [tool("send", cites={"to": ["crm"]})])

    agent.call("mail__send", {"to": "crm://1"})
    assert DECLARATION in server.seen("tools/call")[-1].params["_meta"]


def test_membership_is_what_counts_not_who_made_the_connector(agent, acme, alice):
    install(acme, "crm", listings={"tools": ["run"]})
    Membership.objects.filter(user=alice).update(role="member")

    assert "crm__run" in agent.names()
