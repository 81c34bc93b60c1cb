"""Resources through the endpoint: lists, reads by URI, and the host's own tools."""

from __future__ import annotations

from uuid import uuid4

import pytest
from mcp.shared.exceptions import MCPError

from connectors.listing_reads import take_listings
from connectors.models import Listing
from tests.connectors.outside import (
    MODES,
    Outside,
    install,
    relist,
    resource,
    text,
    token_for,
    traces,
    words_of,
)
from tests.servers.raw import Error, Reply, raw_server
from workspaces.models import Workspace


@pytest.fixture
def server():
    with raw_server(capabilities={"resources": {}, "tools": {}}) as running:
        running.on("resources/read", lambda request: resource(request.params["uri"], "words"))
        yield running


def entry(uri, **more):
    return {"uri": uri, "name": uri, **more}


def read(agent, uri, mode="auto"):
    return agent.talk(lambda client: client.read_resource(uri), mode)


def lists(agent, mode="auto"):
    async def both(client):
        resources = (await client.list_resources()).resources
        templates = (await client.list_resource_templates()).resource_templates
        return [each.uri for each in resources], [each.uri_template for each in templates]

    return agent.talk(both, mode)


@pytest.mark.requirement("L-028", "L-029")
@pytest.mark.parametrize("mode", MODES)
def test_lists_hold_what_ready_connectors_list_with_uris_as_they_are(agent, acme, other, mode):
    odd = ["x:y z", "crm://é?q=1#f", "UI://Widget"]
    marked = entry("crm://facets/1", _meta={"ai.nimblebrain/facets": {}}, title="Due")
    install(acme, "mail", listings={"resources": [entry("mail://1")], "templates": ["mail://{id}"]})
    install(
        acme,
        "crm",
        listings={
            "resources": [*map(entry, odd), marked, {"name": "no uri"}, 7],
            "templates": ["crm://s/{+id}", {"name": "broken"}],
        },
    )
    install(acme, "down", connection="failed", listings={"resources": [entry("down://1")]})
    install(other, "theirs", listings={"resources": [entry("theirs://1")]})

    assert lists(agent, mode) == (
        [*odd, "crm://facets/1", "mail://1"],
        ["crm://s/{+id}", "mail://{id}"],
    )


def test_a_list_has_one_page(agent):
    for method in ["tools/list", "resources/list", "resources/templates/list"]:
        answer = agent.post(method, {"cursor": "2"}).json()
        assert answer["error"]["code"] == -32602


@pytest.mark.parametrize("mode", MODES)
def test_a_read_goes_to_the_owner_by_template_and_else_to_who_lists_it(agent, acme, server, mode):
    with raw_server() as lister:
        lister.on("resources/read", lambda request: resource(request.params["uri"], "listed"))
        install(acme, "owner", server.url, listings={"templates": ["crm://s/{id}"]})
        listings = {"resources": [entry("crm://s/1"), entry("only://1"), entry("ui://w")]}
        install(acme, "lister", lister.url, listings=listings)

        found = [
            read(agent, uri, mode).contents[0].text for uri in ("crm://s/1", "only://1", "ui://w")
        ]

    assert found == ["words", "listed", "listed"]


@pytest.mark.requirement("D8")
@pytest.mark.parametrize("mode", MODES)
def test_an_ambiguous_an_unknown_and_an_unready_uri_are_clear_errors(agent, acme, server, mode):
    install(
        acme,
        "a",
        server.url,
        listings={"templates": ["crm://s/{id}"], "resources": [entry("x://1")]},
    )
    install(
        acme,
        "b",
        server.url,
        listings={"templates": ["crm://s/{nr}"], "resources": [entry("x://1")]},
    )
    install(acme, "down", connection="failed", listings={"templates": ["down://{id}"]})
    code = -32002 if mode == "legacy" else -32602

    for uri, words in [
        ("crm://s/1", "More than one connector"),
        ("x://1", "More than one connector"),
        ("nope://1", "No connector"),
        ("files://1", "No connector"),
        ("down://1", "Down is not ready: Failed."),
    ]:
        with pytest.raises(MCPError, match=words) as raised:
            read(agent, uri, mode)
        assert (raised.value.error.code, raised.value.error.data) == (code, {"uri": uri})
    assert server.count("resources/read") == 0


@pytest.mark.parametrize("mode", MODES)
def test_a_resource_comes_back_as_it_is_and_is_not_for_shared_caches(agent, acme, server, mode):
    contents = [
        {"uri": "crm://s/1", "text": "é", "mimeType": "text/plain", "_meta": {"k": 1}},
        {"uri": "crm://s/1", "blob": "AAAA"},
    ]
    server.on("resources/read", {"contents": contents, "ttlMs": 99_000, "cacheScope": "public"})
    install(acme, "crm", server.url, listings={"templates": ["crm://s/{id}"]})

    result = read(agent, "crm://s/1", mode).model_dump(by_alias=True, exclude_none=True)

    assert result["contents"] == contents
    if mode != "legacy":
        assert (result["ttlMs"], result["cacheScope"]) == (0, "private")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "answer", [Error(-32603, "broken"), Reply(500), {"contents": 5}, {"contents": [{"text": "x"}]}]
)
def test_a_failed_read_is_a_clear_error(agent, acme, server, mode, answer, caplog):
    server.on("resources/read", lambda request: answer)
    install(acme, "crm", server.url, listings={"templates": ["crm://s/{id}"]})

    with pytest.raises(MCPError, match="Crm"):
        read(agent, "crm://s/1", mode)
    assert "Traceback" not in caplog.text


@pytest.mark.requirement("R-131", "R-134")
def test_a_task_without_the_read_tool_reaches_no_resource(site, acme, alice, server):
    install(
        acme,
        "crm",
        server.url,
        listings={"templates": ["crm://s/{id}"], "resources": [entry("crm://s/1")]},
    )
    task = Outside(site, "acme", token_for(acme, alice, allowed_tools=["crm__*"]))

    assert lists(task) == ([], [])
    with pytest.raises(MCPError, match="No connector"):
        read(task, "crm://s/1")
    assert server.count("resources/read") == 0


def read_tool(agent, uri, mode="auto"):
    result = agent.call("nb__read_resource", {"uri": uri}, mode=mode)
    return words_of(result), result.is_error


@pytest.mark.parametrize("mode", MODES)
def test_the_agents_own_read_gives_text(agent, acme, server, mode):
    server.on(
        "resources/read",
        {
            "contents": [
                {"uri": "a", "text": "one"},
                {"uri": "b", "blob": "AAAAAA==", "mimeType": "image/png"},
                {"uri": "c", "text": "two"},
            ]
        },
    )
    install(acme, "crm", server.url, listings={"templates": ["crm://s/{id}"]})

    words, is_error = read_tool(agent, "crm://s/1", mode)

    assert words == "one\n[image/png, 4 bytes: not text, left out]\ntwo"
    assert not is_error
    [trace] = traces()
    assert (trace.tool, trace.connector_name, trace.outcome) == ("nb__read_resource", "Crm", "ok")
    [event] = trace.events.all()
    assert (event.kind, event.uri, event.code) == ("resource_read", "crm://s/1", "ok")


@pytest.mark.parametrize(
    ("length", "shown"),
    [
        ("x" * 49_600, None),
        ("x" * 49_601, "x" * 49_600),
        ("y" + "😀" * 24_800, "y" + "😀" * 24_799),
    ],
)
def test_long_text_is_cut_and_says_so(agent, acme, server, length, shown):
    server.on("resources/read", resource("crm://s/1", length))
    install(acme, "crm", server.url, listings={"templates": ["crm://s/{id}"]})

    words, is_error = read_tool(agent, "crm://s/1")

    assert not is_error
    if shown is None:
        assert words == length
    else:
        kept, note = words.split("\n\n")
        assert kept == shown
        assert note == "[Cut: this is the beginning, 49,600 of 49,601 characters.]"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"uri": "nope://1"}, "No connector"),
        ({"uri": 5}, "`uri` has to be text."),
        ({}, "`uri` has to be text."),
        ({"uri": "crm://s/error"}, "Crm: gone"),
        ({"uri": "crm://s/empty"}, "returned nothing"),
    ],
)
def test_what_cannot_be_read_is_an_error_result(agent, acme, server, arguments, words):
    def answer(request):
        is_error = request.params["uri"].endswith("error")
        return Error(-32602, "gone") if is_error else {"contents": []}

    server.on("resources/read", answer)
    install(acme, "crm", server.url, listings={"templates": ["crm://s/{id}"]})

    result = agent.call("nb__read_resource", arguments)

    assert result.is_error and words in words_of(result)


@pytest.mark.requirement("L-001", "L-002", "L-003")
def test_the_resource_tools_are_offered_only_where_the_workspace_wants_them(agent, acme):
    assert agent.names() == ["nb__read_resource"]
    with pytest.raises(MCPError, match="Unknown tool"):
        agent.call("list_mcp_resources")

    Workspace.objects.filter(pk=acme.pk).update(has_resource_tools=True)

    async def tools(client):
        return (await client.list_tools()).tools

    offered = agent.talk(tools)
    assert [each.name for each in offered] == [
        "nb__read_resource",
        "list_mcp_resources",
        "read_mcp_resource",
    ]
    for each in offered:
        assert each.annotations.read_only_hint is True
        assert each.annotations.destructive_hint is False


@pytest.mark.requirement("L-004", "L-010", "L-011", "L-013", "L-014", "L-015", "L-028", "L-029")
def test_the_workspaces_resources_are_listed_from_what_is_stored(agent, acme, other, alice):
    Workspace.objects.filter(pk=acme.pk).update(has_resource_tools=True)
    empty = agent.call("list_mcp_resources")
    assert (words_of(empty), empty.is_error) == ("", False)

    described = entry("crm://1", name="one", mimeType="text/plain", description="The first.")
    marked = entry("crm://f", name="due", title="Due", _meta={"ai.nimblebrain/facets": {}})
    install(acme, "crm", listings={"resources": [described, marked]})
    install(acme, "plain", listings={"resources": []})
    broken = install(acme, "broken")
    Listing.objects.filter(connector=broken, kind="resources").update(failure="No answer.")
    install(acme, "down", connection="failed", listings={"resources": [entry("down://1")]})
    install(other, "theirs", listings={"resources": [entry("theirs://1")]})
    install(alice, "own", listings={"resources": [entry("own://1")]})

    listed = agent.call("list_mcp_resources")
    assert not listed.is_error
    assert words_of(listed).splitlines() == [
        "broken: its resources could not be listed: No answer.",
        "crm crm://1 — one (text/plain): The first.",
        "crm crm://f — due",
    ]
    assert words_of(agent.call("list_mcp_resources", {"server": "crm"})).count("\n") == 1
    for server in ["down", "theirs", "own", "nope", 5, ["crm"]]:
        assert agent.call("list_mcp_resources", {"server": server}).is_error
    assert agent.call("list_mcp_resources", {"server": "broken"}).is_error


@pytest.mark.requirement("L-016", "L-017", "L-018", "L-026")
def test_one_resource_of_a_named_server_is_read(agent, acme, server):
    Workspace.objects.filter(pk=acme.pk).update(has_resource_tools=True)
    long = "x" * 60_000

    def answer(request):
        uri = request.params["uri"]
        return Error(-32602, "no such thing") if "nope" in uri else resource(uri, long)

    server.on("resources/read", answer)
    install(acme, "crm", server.url)

    found = agent.call("read_mcp_resource", {"server": "crm", "uri": "odd é uri"})
    assert (words_of(found), found.is_error) == (long, False)
    assert server.seen("resources/read")[-1].params["uri"] == "odd é uri"
    for arguments, words in [
        ({"server": "crm", "uri": "nope"}, "no such thing"),
        ({"server": "other", "uri": "x"}, "no connected server"),
        ({"server": "crm"}, "have to be text"),
        ({"uri": "x"}, "have to be text"),
        ({"server": 5, "uri": []}, "have to be text"),
    ]:
        refused = agent.call("read_mcp_resource", arguments)
        assert refused.is_error and words in words_of(refused)


@pytest.mark.requirement("F-007", "R-058", "R-064")
def test_resources_are_listed_for_the_endpoint_only_while_it_is_used(agent, acme, server):
    server.on("tools/list", {"tools": []})
    server.on("resources/templates/list", {"resourceTemplates": []})
    server.on("resources/list", {"resources": [entry("crm://1")]})
    crm = install(acme, "crm", server.url)
    faceted = install(acme, "faceted", server.url, advertises_facets=True)

    def take():
        from django.utils import timezone

        take_listings([crm.pk, faceted.pk], uuid4().hex, timezone.now())

    take()
    assert server.count("resources/list") == 0
    assert server.count("tools/list") == 2
    assert lists(agent) == ([], [])
    take()
    assert server.count("resources/list") == 1
    assert lists(agent) == (["crm://1"], [])
    take()
    assert server.count("resources/list") == 1


def test_a_relisted_resource_is_seen_at_once(agent, acme):
    crm = install(acme, "crm", listings={"resources": [entry("crm://1")]})
    assert lists(agent)[0] == ["crm://1"]

    relist(crm, "resources", [entry("crm://2")])

    assert lists(agent)[0] == ["crm://2"]


def test_a_tool_result_is_not_touched_by_the_host_tools(agent, acme, server):
    server.on("tools/call", text("x"))
    install(acme, "crm", server.url, listings={"tools": ["nb__read_resource"]})

    assert words_of(agent.call("crm__nb__read_resource")) == "x"


@pytest.mark.requirement("D14")
@pytest.mark.parametrize(("reply", "is_doubted"), [(Reply(503), True), (Reply(429), False)])
def test_a_read_that_fails_on_its_connection_has_it_looked_at_at_once(
    agent, acme, server, queued, reply, is_doubted
):
    connector = install(acme, "crm", server.url, listings={"templates": ["crm://s/{id}"]})
    server.on("resources/read", lambda _: reply)
    with pytest.raises(MCPError):
        read(agent, "crm://s/1")
    assert (("check_connector", connector.pk) in queued) is is_doubted
