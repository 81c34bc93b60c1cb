"""Trying a tool: what is offered to whom, the form, the confirmation, the answer and its trace."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from connectors.models import ToolCall
from tests.connectors.outside import (
    delivered,
    install,
    resource,
    tool,
    traces,
)
from tests.connectors.outside import (
    text as answer_text,
)
from tests.servers.raw import Error, raw_server

URL = "/w/acme/tools/"
CALL = "/w/acme/tools/call/"
READS = {"annotations": {"readOnlyHint": True}}
SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer", "description": "Its number"},
        "note": {"type": "string"},
    },
    "required": ["id"],
}
MARKER = "planted-content-51c0"


@pytest.fixture
def at(transactional_db, queued):
    """As on a page of the running site: nothing remembered, everything written at the end."""
    from connectors.endpoint import stored
    from connectors.runtime import close_runtime
    from connectors.traces import recorder

    stored.forget()
    yield
    assert recorder.flush()
    close_runtime()


@pytest.fixture
def server(at):
    with raw_server(capabilities={"tools": {}, "resources": {}}) as running:
        running.on("tools/call", answer_text("done"))
        yield running


@pytest.fixture
def crm(server, acme):
    tools = [tool("lookup", inputSchema=SCHEMA, **READS), tool("remove", inputSchema=SCHEMA)]
    return install(acme, "crm", server.url, name="CRM", listings={"tools": tools})


def page(response, status=200):
    assert response.status_code == status, response.status_code
    return response.content.decode()


def at_tool(client, name):
    return page(client.get(CALL, {"name": name}))


def sent(client, name, *, html=None, **fields):
    """Send the form of a tool's page."""
    html = html or at_tool(client, name)
    once = re.search(r'name="once" value="([^"]+)"', html)
    assert once
    return client.post(f"{CALL}?name={name}", {"once": once[1], **fields})


@pytest.mark.django_db
def test_tools_are_for_members_alone(acme, other, bob_client, carol_client, queued):
    install(acme, "crm", listings={"tools": ["lookup"]})
    for url in (URL, f"{CALL}?name=crm__lookup"):
        assert bob_client.get(url).status_code == 200
        for client, address in [
            (carol_client, url),
            (carol_client, url.replace("acme", "nowhere")),
        ]:
            assert client.get(address).status_code == 404
        assert carol_client.post(url, {"a0": "1"}).status_code in (404, 405)
        assert Client().get(url)["Location"].startswith("/sign-in/")
    assert carol_client.get(f"{CALL}?name=crm__lookup".replace("acme", "other")).status_code == 404
    assert ToolCall.objects.count() == 0


@pytest.mark.django_db
def test_the_list_names_each_tool_its_source_and_what_it_takes(acme, bob_client, queued):
    cites = {"citations": ["crm", "mail"]}
    install(acme, "mail", listings={"tools": [tool("send", cites=cites), tool("find", **READS)]})
    install(acme, "dead", connection="failed", listings={"tools": ["gone"]})
    html = page(bob_client.get(URL))
    assert "mail__send" in html
    assert "mail__find" in html
    assert "nb__read_resource" in html
    assert "dead__gone" not in html
    assert "<bdi>citations</bdi> (<code>crm:</code>, <code>mail:</code>)" in html
    assert html.count("Reads only") == 2
    assert "mail__find" not in page(bob_client.get(URL, {"q": "SEND mail"}))
    assert "No tools match" in page(bob_client.get(URL, {"q": "nothing-like-it"}))


@pytest.mark.django_db
def test_somebodys_own_tools_are_on_their_page_alone(acme, bob, bob_client, alice_client, queued):
    install(bob, "notes", listings={"tools": ["add"]})
    assert "my_notes__add" in page(bob_client.get(URL))
    assert "my_notes__add" not in page(alice_client.get(URL))
    assert alice_client.get(CALL, {"name": "my_notes__add"}).status_code == 404


def test_a_tool_that_only_reads_is_called_at_once(bob, bob_client, crm, server):
    html = page(sent(bob_client, "crm__lookup", a0="42"))
    assert "done" in html
    [request] = server.seen("tools/call")
    assert request.params["arguments"] == {"id": 42}
    [trace] = traces()
    assert (trace.caller, trace.user, trace.token, trace.tool) == (
        "person",
        bob,
        None,
        "crm__lookup",
    )
    assert str(trace.pk) in html


def test_any_other_tool_is_called_after_a_confirmation(bob_client, crm, server):
    html = page(sent(bob_client, "crm__remove", a0="42", a1="<b>"))
    assert "may change or delete" in html
    assert "&quot;id&quot;: 42" in html
    assert server.count("tools/call") == 0
    # The confirmation carries everything that was entered.
    fields = dict(re.findall(r'type="hidden" name="(a\d|once)" value="([^"]*)"', html))
    fields["a1"] = fields["a1"].replace("&lt;", "<").replace("&gt;", ">")
    assert "done" in page(bob_client.post(f"{CALL}?name=crm__remove", {**fields, "confirmed": "1"}))
    [request] = server.seen("tools/call")
    assert request.params["arguments"] == {"id": 42, "note": "<b>"}


def test_the_arguments_can_be_changed_instead_of_confirmed(bob_client, crm, server):
    html = page(sent(bob_client, "crm__remove", a0="42", edit="1"))
    assert 'value="42"' in html
    assert server.count("tools/call") == 0


def test_a_second_click_makes_no_second_call(bob_client, crm, server):
    html = at_tool(bob_client, "crm__lookup")
    page(sent(bob_client, "crm__lookup", html=html, a0="1"))
    again = page(sent(bob_client, "crm__lookup", html=html, a0="1"))
    assert "This call was made already" in again
    assert server.count("tools/call") == 1
    # The page that says so can make another one.
    assert "done" in page(sent(bob_client, "crm__lookup", html=again, a0="1"))
    assert server.count("tools/call") == 2


@pytest.mark.parametrize("fields", [{"a0": "four"}, {"a0": ""}, {}, {"a1": "x"}])
def test_what_does_not_fit_is_not_sent(bob_client, crm, server, fields):
    html = page(sent(bob_client, "crm__lookup", **fields), 422)
    assert 'aria-invalid="true"' in html
    assert server.count("tools/call") == 0
    assert ToolCall.objects.count() == 0


def test_a_form_without_its_mark_is_not_sent(bob_client, crm, server):
    for once in ("", "x", "0" * 5000):
        response = bob_client.post(f"{CALL}?name=crm__lookup", {"a0": "1", "once": once})
        assert response.status_code == 422
    assert server.count("tools/call") == 0


@pytest.mark.requirement("R-130", "R-141", "R-160")
def test_resource_arguments_are_read_and_handed_on_as_for_agents(acme, bob_client, server):
    schema = {
        "type": "object",
        "properties": {"citations": {"type": "array", "items": {"type": "string"}}},
    }
    tools = [tool("send", cites={"citations": ["crm"]}, inputSchema=schema, **READS)]
    listings = {"tools": tools, "templates": ["crm://signals/{id}"]}
    install(acme, "crm", server.url, listings=listings)
    server.on("resources/read", lambda request: resource(request.params["uri"], MARKER))
    html = page(sent(bob_client, "crm__send", a0="crm://signals/42\nmail://1"))
    assert delivered(server)["crm://signals/42"]["contents"][0]["text"] == MARKER
    [trace] = traces()
    codes = [(each.uri, each.code) for each in trace.events.order_by("position")]
    assert codes == [("crm://signals/42", "ok"), ("mail://1", "scheme_not_declared")]
    assert "crm://signals/42" in html
    assert MARKER not in html


@pytest.mark.requirement("R-162")
def test_an_answer_is_shown_and_kept_nowhere(bob_client, crm, server):
    from django.contrib.sessions.models import Session

    server.on("tools/call", answer_text(MARKER))
    response = sent(bob_client, "crm__lookup", a0="1")
    assert MARKER in page(response)
    assert "no-store" in response["Cache-Control"]
    [trace] = traces()
    stored = [str(vars(trace)), *(str(each.get_decoded()) for each in Session.objects.all())]
    assert not any(MARKER in each for each in stored)


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        (answer_text("<img src=x onerror=alert(1)>{{ 7 }}"), "&lt;img src=x"),
        (answer_text("x" * 30_000), "Cut: this is only the beginning."),
        (answer_text("a\x00b"), "a�b"),
        (
            {"content": [{"type": "image", "data": "A" * 4000, "mimeType": "image/png"}]},
            "Image, image/png, about 3,000 bytes: not shown.",
        ),
        (
            {"content": [{"type": "resource", "resource": {"uri": "a://b", "blob": "AAAA"}}]},
            "A resource, unknown type, about 3 bytes: not shown.",
        ),
        (
            {"content": [{"type": "resource", "resource": {"uri": "a://b", "text": "inside"}}]},
            "inside",
        ),
        ({"content": [{"type": "resource_link", "uri": "a://b", "name": "b"}]}, "A link to a://b"),
        ({"content": [{"type": "hologram"}, 5, None]}, "of a kind that is not known here"),
        ({"content": [], "structuredContent": {"k": [1]}}, "&quot;k&quot;"),
        ({"content": []}, "The result is empty."),
        ({"content": "text"}, "The result is empty."),
        ({**answer_text("no"), "isError": True}, "Error</span>"),
        (Error(-32000, "exploded <b>"), "exploded &lt;b&gt;"),
    ],
    ids=range(13),
)
def test_any_answer_is_a_page(bob_client, crm, server, result, shown):
    server.on("tools/call", result)
    html = page(sent(bob_client, "crm__lookup", a0="1"))
    assert shown in html
    assert "<img src=x" not in html


def test_a_connector_that_is_not_ready_says_so_and_is_not_called(acme, bob_client, server):
    failed = {"connection": "failed", "listings": {"tools": [tool("lookup", **READS)]}}
    install(acme, "crm", server.url, name="CRM", **failed)
    assert "CRM is not ready: Failed." in at_tool(bob_client, "crm__lookup")
    response = bob_client.post(f"{CALL}?name=crm__lookup", {"once": "x"})
    assert response.status_code == 422
    assert server.count("tools/call") == 0


def test_the_hosts_own_read_can_be_tried(acme, bob_client, server):
    install(acme, "crm", server.url, listings={"templates": ["crm://signals/{id}"]})
    server.on("resources/read", resource("crm://signals/42", "the record"))
    html = page(sent(bob_client, "nb__read_resource", a0="crm://signals/42"))
    assert "the record" in html
    [trace] = traces()
    assert str(trace.pk) in html


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["", "crm__nothing", "\x00", "../../x", "crm__lookup" * 500])
def test_a_tool_that_does_not_exist_is_not_found(acme, bob_client, name, queued):
    install(acme, "crm", listings={"tools": ["lookup"]})
    assert bob_client.get(CALL, {"name": name}).status_code == 404


HOSTILE = '"><img src=x onerror=alert(1)>\u202e{{ 7 }}\ud800\x00'


@pytest.mark.django_db
def test_hostile_text_stays_text(acme, bob_client, queued):
    schema = {
        "type": "object",
        "title": HOSTILE,
        "properties": {
            HOSTILE: {
                "type": "string",
                "description": HOSTILE,
                "title": HOSTILE,
                "default": HOSTILE,
            },
            "pick": {"enum": [HOSTILE], "description": HOSTILE},
        },
        "required": [HOSTILE],
    }
    cites = {HOSTILE: ["crm"]}
    evil = tool(
        "evil",
        cites=cites,
        description=HOSTILE,
        title=HOSTILE,
        inputSchema=schema,
        annotations={"title": HOSTILE},
    )
    install(
        acme,
        "crm",
        name='"><img src=x>',
        listings={"tools": [evil, tool(HOSTILE), tool("a/b?c&d=#e")]},
    )
    for html in (
        page(bob_client.get(URL)),
        at_tool(bob_client, "crm__evil"),
        at_tool(bob_client, "crm__a/b?c&d=#e"),
    ):
        assert "<img src=x" not in html
    response = sent(
        bob_client, "crm__evil", a0=HOSTILE.replace("\x00", "").replace("\ud800", ""), a1="0"
    )
    assert "<img src=x" not in page(response)


@pytest.mark.django_db
def test_very_many_tools_are_cut_and_can_be_searched(acme, bob_client, queued):
    install(acme, "crm", listings={"tools": [f"tool{number:04}" for number in range(500)]})
    html = page(bob_client.get(URL))
    assert "401 more tools: search to find them." in html
    assert "tool0499" in page(bob_client.get(URL, {"q": "tool0499"}))
