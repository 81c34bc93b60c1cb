"""Each example server does what its first lines say, seen through the SDK's client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError

from .conftest import FACETS, count_of, facets_of, talk

RESOURCE_ARGUMENTS = "ai.nimblebrain/resource-arguments"
UrlOf = Callable[[str], str]


async def extensions_of(client: Client) -> tuple[str, dict[str, Any] | None]:
    return client.protocol_version, client.server_capabilities.extensions


def handing_over(entries: dict[str, Any]) -> Any:
    return {RESOURCE_ARGUMENTS: entries}


def text_of(result: Any) -> str:
    return "\n".join(content.text for content in result.content)


@pytest.mark.parametrize(
    ("slug", "mode", "revision", "extensions"),
    [
        ("crm", "auto", "2026-07-28", {FACETS: {}}),
        # The SDK's server advertises in server/discover only, as the specification warns.
        ("crm", "legacy", "2025-11-25", None),
        ("outbound", "auto", "2025-11-25", {FACETS: {}}),
        ("acme", "auto", "2026-07-28", {FACETS: {}}),
        ("acme", "legacy", "2025-11-25", {FACETS: {}}),
        ("billing", "auto", "2026-07-28", {FACETS: {}}),
    ],
)
def test_each_advertises_in_the_eras_that_it_speaks(
    url_of: UrlOf, slug: str, mode: str, revision: str, extensions: object
) -> None:
    assert talk(url_of(slug), extensions_of, mode) == (revision, extensions)


@pytest.mark.parametrize(
    ("slug", "facets"),
    [
        (
            "crm",
            {
                "tasks-blocked": ("Tasks blocked", "critical"),
                "replies-received": ("Replies received", "info"),
            },
        ),
        ("outbound", {"drafts-awaiting-review": ("Drafts awaiting review", "warning")}),
        ("acme", {"drafts-awaiting-review": ("Drafts awaiting review", "warning")}),
        (
            "billing",
            {
                "payments-to-reconcile": ("Payments to reconcile", "warning"),
                "invoices-overdue": ("Invoices overdue", "critical"),
                "refunds-to-approve": ("Refunds to approve", "warning"),
                "nameless": (None, "warning"),
            },
        ),
    ],
)
def test_each_lists_its_facets(url_of: UrlOf, slug: str, facets: object) -> None:
    assert talk(url_of(slug), facets_of) == facets


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_typescript_example_counts_three_drafts_in_both_eras(url_of: UrlOf, mode: str) -> None:
    async def read(client: Client) -> object:
        return await count_of(client, "acme://facets/drafts-awaiting-review")

    assert talk(url_of("acme"), read, mode) == 3


def test_a_resolved_task_leaves_the_count_of_the_crm(url_of: UrlOf) -> None:
    async def resolve(client: Client) -> tuple[object, str, object, bool]:
        before = await count_of(client, "crm://facets/tasks-blocked")
        done = await client.call_tool("resolve_task", {"task_id": 1})
        again = await client.call_tool("resolve_task", {"task_id": 1})
        after = await count_of(client, "crm://facets/tasks-blocked")
        return before, text_of(done), after, again.is_error

    before, said, after, is_refused = talk(url_of("crm"), resolve)
    assert (before, after, is_refused) == (2, 1, True)
    assert said.startswith("Resolved: ")


def test_the_crm_serves_the_signals_that_its_tool_finds(url_of: UrlOf) -> None:
    async def find(client: Client) -> tuple[list[str], str, dict[str, Any]]:
        templates = await client.list_resource_templates()
        found = await client.call_tool("find_signals", {"company": "northwind", "kind": "funding"})
        assert found.structured_content is not None
        (signal,) = found.structured_content["result"]
        record = await client.read_resource(signal["uri"])
        uris = [template.uri_template for template in templates.resource_templates]
        return uris, signal["uri"], json.loads(record.contents[0].text)

    templates, uri, record = talk(url_of("crm"), find)
    assert (templates, uri) == (["crm://signals/{id}"], "crm://signals/42")
    assert (record["id"], record["kind"]) == (42, "funding")


def test_the_crm_refuses_a_signal_that_it_does_not_have(url_of: UrlOf) -> None:
    async def read(client: Client) -> str:
        with pytest.raises(MCPError) as refusal:
            await client.read_resource("crm://signals/999")
        return refusal.value.message

    assert talk(url_of("crm"), read) == "There is no signal 999."


def test_the_outbound_tool_judges_the_records_that_the_host_hands_over(url_of: UrlOf) -> None:
    async def record(client: Client) -> list[dict[str, Any]]:
        uris = ["crm://signals/42", "crm://signals/7"]
        read = [await client.read_resource(uri) for uri in uris]
        return [result.model_dump(by_alias=True, exclude_none=True) for result in read]

    fresh, old = talk(url_of("crm"), record)
    entries: dict[str, Any] = {
        "crm://signals/42": {"contents": fresh["contents"]},
        "crm://signals/7": {"contents": old["contents"]},
        "crm://signals/9": {"error": {"code": "not_found", "message": "-"}},
    }

    async def send(client: Client) -> list[tuple[bool, str]]:
        (tool,) = (await client.list_tools()).tools
        assert tool.meta == {RESOURCE_ARGUMENTS: {"arguments": {"citations": {"schemes": ["crm"]}}}}
        results = [
            await client.call_tool(
                tool.name,
                {"body": "Congratulations.", "citations": citations},
                meta=handing_over({uri: entries[uri] for uri in citations}),
            )
            for citations in (["crm://signals/42"], list(entries))
        ]
        unread = await client.call_tool(tool.name, {"body": "-", "citations": ["crm://signals/1"]})
        return [(result.is_error, text_of(result)) for result in (*results, unread)]

    sent, refused, unread = talk(url_of("outbound"), send)
    assert not sent[0] and "Raised a series B of 30 million" in sent[1]
    assert refused == (
        True,
        "Not sent. crm://signals/7: observed 900 days ago; crm://signals/9: not_found",
    )
    assert unread == (True, "Not sent. crm://signals/1: the host handed over no record")


def test_the_outbound_server_offers_no_stream_and_answers_no_notification(url_of: UrlOf) -> None:
    url = url_of("outbound")
    notification = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert httpx2.get(url, trust_env=False).status_code == 405
    assert httpx2.post(url, json=notification, trust_env=False).status_code == 202


def test_the_billing_server_is_wrong_every_third_time_and_slow_where_it_says_so(
    url_of: UrlOf,
) -> None:
    async def read(client: Client) -> tuple[list[object], object]:
        overdue = [await count_of(client, "billing://facets/invoices-overdue") for _ in range(3)]
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await count_of(client, "billing://facets/payments-to-reconcile")
        return overdue, await count_of(client, "billing://facets/refunds-to-approve")

    assert talk(url_of("billing"), read) == ([4, 4, "four"], 2)


def test_the_billing_server_answers_503_now_and_then(url_of: UrlOf) -> None:
    codes = [httpx2.get(url_of("billing"), trust_env=False).status_code for _ in range(50)]
    assert codes.count(503) == 2
