"""The endpoint as clients of the npm SDK see it: 1.x, and 2.x in both of its ways to connect."""

from __future__ import annotations

import pytest

from tests.connectors.outside import traces
from tests.peers.npm import require_clients, talk

REVISIONS = {"1": "2025-11-25", "2": "2025-11-25", "2 auto": "2026-07-28"}


@pytest.fixture(scope="session", autouse=True)
def clients():
    require_clients()


@pytest.fixture(params=REVISIONS)
def sdk(request):
    return request.param


def said(result):
    return "\n".join(each["text"] for each in result["content"])


def test_a_client_lists_reads_and_calls(workspace, sdk):
    conversation = talk(
        sdk,
        workspace.url,
        workspace.token,
        ["listTools", {}],
        ["listResources", {}],
        ["listResourceTemplates", {}],
        ["readResource", {"uri": "crm://signals/42"}],
        ["readResource", {"uri": "crm://signals/999"}],
        ["callTool", {"name": "crm__find_signals", "arguments": {"kind": "hiring"}}],
        ["callTool", {"name": "nb__read_resource", "arguments": {"uri": "crm://signals/43"}}],
        ["callTool", {"name": "crm__nothing", "arguments": {}}],
    )

    assert conversation["revision"] == REVISIONS[sdk]
    tools, resources, templates, signal, missing, found, read, unknown = conversation["results"]
    assert [each["name"] for each in tools["tools"]] == [
        "nb__read_resource",
        "crm__find_signals",
        "crm__blocked_tasks",
        "crm__resolve_task",
        "outbound__send_with_citations",
    ]
    assert [each["uri"] for each in resources["resources"]] == [
        "crm://facets/tasks-blocked",
        "crm://facets/replies-received",
        "outbound://facets/drafts-awaiting-review",
    ]
    assert [each["uriTemplate"] for each in templates["resourceTemplates"]] == [
        "crm://signals/{id}"
    ]
    assert "series B" in signal["contents"][0]["text"]
    assert missing["refusal"]["data"] == {"uri": "crm://signals/999"}
    assert [each["id"] for each in found["structuredContent"]["result"]] == [43]
    assert "head of support" in said(read)
    assert unknown["refusal"]["code"] == -32602


@pytest.mark.requirement("R-130", "R-135")
def test_a_message_cites_records_that_the_client_never_read(workspace, sdk):
    def send(*uris):
        arguments = {"body": "Hello", "citations": uris}
        return ["callTool", {"name": "outbound__send_with_citations", "arguments": arguments}]

    conversation = talk(
        sdk,
        workspace.url,
        workspace.token,
        send("crm://signals/42", "crm://signals/43"),
        send("crm://signals/42", "crm://signals/999"),
    )

    sent, refused = conversation["results"]
    assert not sent.get("isError")
    assert "Raised a series B of 30 million" in said(sent)
    assert refused["isError"] and "crm://signals/999: not_found" in said(refused)
    assert [(each.resources_read, each.resources_refused) for each in traces()] == [(2, 0), (1, 1)]


def test_a_client_with_an_unknown_token_hears_of_it(site, acme, sdk):
    conversation = talk(sdk, f"{site}/mcp/{acme.slug}", "nb_unknown")

    assert conversation["refusal"]["code"] == 401
