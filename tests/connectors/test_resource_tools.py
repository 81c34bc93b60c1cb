"""list_mcp_resources and read_mcp_resource on a loaded source, without the site."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from connectors.resource_tools import ToolResult, load_mcp
from connectors.resource_tools.text import cut, listed, read_text, resource_line
from tests.servers.raw import Error, forever, raw_server

FIXTURE = Path(__file__).parent.parent / "servers" / "stdio_resources.py"
STDIO: dict[str, Any] = {"command": [sys.executable, str(FIXTURE)], "timeout": 5000}


def use(config, work):
    """Load a source, work with it, close it; all of it bounded."""

    async def run():
        async with asyncio.timeout(20):
            source = await load_mcp(config)
            try:
                return await work(source)
            finally:
                await source.close()

    return asyncio.run(run())


def listing(config, arguments=None):
    return use(config, lambda source: source.resource_tools()[0].execute(arguments or {}))


def reading(config, arguments):
    return use(config, lambda source: source.resource_tools()[1].execute(arguments))


@pytest.fixture
def server():
    with raw_server(capabilities={"resources": {}}) as running:
        running.on("resources/list", {"resources": [{"uri": "a://1", "name": "one"}]})
        running.on("resources/read", {"contents": [{"uri": "a://1", "text": "words"}]})
        yield running


def resources(server, *entries):
    server.on("resources/list", {"resources": list(entries)})


@pytest.mark.requirement("L-001", "L-002", "L-003", "L-004", "L-016", "L-017", "L-027")
def test_the_specifications_examples_hold_over_stdio():
    async def work(source):
        assert [each.name for each in source.tools] == ["progress_slow"]
        tools = source.resource_tools()
        assert [each.name for each in tools] == ["list_mcp_resources", "read_mcp_resource"]
        assert all(each.hints.read_only and not each.hints.destructive for each in tools)
        list_resources, read_resource = (each.execute for each in tools)
        greeting = await source.tools[0].execute({"name": "you"})
        return (
            await list_resources({}),
            await read_resource({"server": "progress", "uri": "fixture://hello"}),
            await read_resource({"server": "progress", "uri": "fixture://nope"}),
            await list_resources({"server": "nope"}),
            greeting,
        )

    found, read, unknown, no_server, greeting = use({"progress": STDIO}, work)

    line = "progress fixture://hello — hello (text/plain): A fixed text resource."
    assert found == ToolResult(line)
    assert read == ToolResult("hello resource")
    assert unknown == ToolResult("Resource not found", is_error=True)
    assert no_server.is_error
    assert greeting == ToolResult("hello you")


@pytest.mark.requirement("L-002")
def test_a_source_is_usable_without_the_site():
    code = (
        "import sys; from connectors.resource_tools import load_mcp; print('django' in sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=FIXTURE.parent.parent.parent,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert ran.stdout.strip() == "False"


@pytest.mark.requirement("L-004", "L-005", "L-006", "L-007", "L-008")
@pytest.mark.parametrize(
    ("entry", "line"),
    [
        ({"name": "N", "mimeType": "M", "description": "D"}, "s u:1 \u2014 N (M): D"),
        ({"name": "N", "description": "D"}, "s u:1 \u2014 N: D"),
        ({"name": "N", "mimeType": "M"}, "s u:1 \u2014 N (M)"),
        ({"mimeType": "M", "description": "D"}, "s u:1 (M): D"),
        ({"name": " \t", "mimeType": "", "description": "\n"}, "s u:1"),
        ({"name": 5, "mimeType": None, "description": []}, "s u:1"),
        ({"name": "a\nb\tc\x00d\u2028e", "description": "f\r\ng"}, "s u:1 \u2014 a b c d e: f g"),
    ],
)
def test_a_resource_is_one_line_without_the_pieces_that_are_missing(entry, line):
    found = resource_line("s", {"uri": "u:1", **entry})

    assert found == line
    assert len(found.splitlines()) == 1


@pytest.mark.requirement("L-009", "L-014", "L-015")
def test_servers_are_in_code_point_order_and_each_keeps_its_own():
    one = [{"uri": "x://2", "name": "b"}, {"uri": "x://1", "name": "a"}, "junk", {"name": "n"}]
    found = listed({"zeta": one, "beta": [], "Alpha": one, "gone": "No\nanswer."})

    assert found.output.splitlines() == [
        "Alpha x://2 — b",
        "Alpha x://1 — a",
        "gone: its resources could not be listed: No answer.",
        "zeta x://2 — b",
        "zeta x://1 — a",
    ]
    assert not found.is_error
    assert listed({}) == listed({"beta": []}) == ToolResult("")
    assert listed({"a": "x", "b": "y"}).is_error


@pytest.mark.requirement("L-019", "L-020", "L-021", "L-022")
def test_what_was_read_is_text_and_names_what_is_not():
    blob = {"uri": "b", "blob": "AAAA" * 1000, "mimeType": "image/png"}
    text = [{"uri": "a", "text": "one"}, {"uri": "c", "text": ""}, {"uri": "d", "text": "two"}]

    assert read_text({"contents": text}) == ToolResult("one\n\ntwo")
    placeholder = "[image/png, 3,000 bytes: not text, left out]"
    assert read_text({"contents": [blob]}) == ToolResult(placeholder)
    assert read_text({"contents": [text[0], blob]}) == ToolResult(f"one\n{placeholder}")
    both = {"uri": "b", "text": "words", "blob": "AA=="}
    assert "words" in read_text({"contents": [both]}).output
    assert "1 bytes" in read_text({"contents": [both]}).output
    for nothing in [{"contents": []}, {}, None, {"contents": 5}, {"contents": ["x"]}]:
        assert read_text(nothing).is_error


def test_a_cut_leaves_no_half_of_a_pair():
    assert cut("😀😀", 4) == "😀😀"
    assert cut("😀😀", 3).startswith("😀\n\n[Cut: ")


@pytest.mark.requirement("L-010", "L-011", "L-013", "L-015", "L-018")
def test_one_failing_server_harms_no_other(server):
    with raw_server(capabilities={"tools": {}}) as plain:
        plain.on("tools/list", {"tools": [{"name": "run"}, {"no": "name"}, 7]})
        config = {
            "good": {"url": server.url},
            "plain": {"url": plain.url},
            "off": {"url": server.url, "enabled": False},
            "away": {"url": "http://127.0.0.1:9/mcp", "timeout": 2000},
            "missing": {"command": ["/no/such/program"], "timeout": 2000},
        }

        async def work(source):
            list_resources, read_resource = (each.execute for each in source.resource_tools())
            assert source.status["good"] == source.status["plain"] == "connected"
            assert [each.name for each in source.tools] == ["plain_run"]
            assert await list_resources({}) == ToolResult("good a://1 — one")
            assert await list_resources({"server": "plain"}) == ToolResult("")
            for name in ["off", "away", "missing", "nope", 5, [], {}]:
                assert (await list_resources({"server": name})).is_error
                assert (await read_resource({"server": name, "uri": "a://1"})).is_error
            for wrong in [{}, {"server": "good"}, {"server": "good", "uri": 5}]:
                assert (await read_resource(wrong)).is_error

        use(config, work)


@pytest.mark.requirement("L-015")
def test_a_server_that_fails_while_listing_has_a_line_of_its_own(server):
    with raw_server(capabilities={"resources": {}}) as broken:
        broken.on("resources/list", lambda request: Error(-32603, "disk full"))
        found = listing({"good": {"url": server.url}, "bad": {"url": broken.url}})
        alone = listing({"bad": {"url": broken.url}})

    assert found.output.splitlines() == [
        "bad: its resources could not be listed: disk full",
        "good a://1 — one",
    ]
    assert not found.is_error
    assert alone.is_error


@pytest.mark.requirement("L-012")
def test_all_pages_are_listed_and_a_loop_ends(server):
    def page(request):
        cursor = request.params.get("cursor", "0")
        following = {"0": "1", "1": "2"}.get(cursor)
        entry = {"uri": f"a://{cursor}", "name": cursor}
        return {"resources": [entry], **({"nextCursor": following} if following else {})}

    server.on("resources/list", page)
    assert len(listing({"s": {"url": server.url}}).output.splitlines()) == 3

    server.on("resources/list", {"resources": [{"uri": "a://1"}], "nextCursor": "again"})
    looped = listing({"s": {"url": server.url}})
    assert not looped.is_error and looped.output


@pytest.mark.requirement("L-026")
def test_a_uri_is_passed_through_unchanged(server):
    for uri in ["a b", "crm://é/😀", " x ", "", "A%20b?c#d"]:
        reading({"s": {"url": server.url}}, {"server": "s", "uri": uri})
        assert server.seen("resources/read")[-1].params["uri"] == uri


@pytest.mark.requirement("L-029")
def test_facets_are_ordinary_resources(server):
    resources(server, {"uri": "f", "name": "due", "_meta": {"ai.nimblebrain/facets": {}}})

    assert listing({"s": {"url": server.url}}).output == "s f — due"


@pytest.mark.requirement("L-023")
def test_a_closed_source_answers_with_errors_and_opens_nothing(server):
    async def work(source):
        await source.close()
        before = len(server.requests)
        for each in source.resource_tools():
            result = await each.execute({"server": "s", "uri": "a://1"})
            assert result == ToolResult("The source is closed.", is_error=True)
        assert len(server.requests) == before

    use({"s": {"url": server.url}}, work)


@pytest.mark.requirement("L-024")
@pytest.mark.parametrize("kind", ["http", "stdio"])
def test_closing_during_a_call_is_an_error_result(server, kind):
    server.on("resources/read", lambda request: forever())
    slow = {**STDIO, "command": [*STDIO["command"], "--slow"]}
    config = {"s": {"url": server.url} if kind == "http" else slow}

    async def work(source):
        call = source.resource_tools()[1].execute({"server": "s", "uri": "fixture://hello"})
        task = asyncio.create_task(call)
        for _ in range(10):
            await asyncio.sleep(0)  # The call is on its way.
        await source.close()
        return await task

    assert use(config, work).is_error


@pytest.mark.requirement("L-025")
@pytest.mark.parametrize("tool", [0, 1])
def test_a_server_slower_than_its_timeout_is_an_error_result(server, tool):
    server.on("resources/read", lambda request: forever())
    server.on("resources/list", lambda request: forever())
    config = {"s": {"url": server.url, "timeout": 400}}

    async def work(source):
        return await source.resource_tools()[tool].execute({"server": "s", "uri": "a://1"})

    assert use(config, work).is_error


def test_tools_give_results_for_whatever_happens():
    with raw_server(capabilities={"tools": {}}) as server:
        server.on("tools/list", {"tools": [{"name": "run", "inputSchema": {"type": "object"}}]})
        outcomes = {
            "text": {"content": [{"type": "text", "text": "a"}, {"type": "image"}, 5]},
            "structured": {"content": [], "structuredContent": {"é": 1}},
            "error": {"content": [{"type": "text", "text": "no"}], "isError": True},
            "garbage": {"content": 5},
            "fault": Error(-32603, "broken"),
        }
        server.on("tools/call", lambda request: outcomes[request.params["arguments"]["kind"]])

        async def work(source):
            run = source.tools[0].execute
            return {kind: await run({"kind": kind}) for kind in outcomes}

        found = use({"s": {"url": server.url}}, work)

    assert found["text"] == ToolResult("a")
    assert found["structured"] == ToolResult('{"é": 1}')
    assert found["error"] == ToolResult("no", is_error=True)
    assert found["garbage"].output == ""
    assert found["fault"] == ToolResult("broken", is_error=True)


@pytest.mark.parametrize(
    "config", [{}, {"url": "http://x", "command": ["y"]}, {"command": "ls -l"}, {"command": []}]
)
def test_a_configuration_that_makes_no_sense_is_refused(config):
    with pytest.raises(ValueError, match="s: "):
        asyncio.run(load_mcp({"s": config}))


def test_headers_and_environment_reach_the_server(server):
    config = {"s": {"url": server.url, "headers": {"Authorization": "Bearer abc"}}}
    listing(config)

    assert {each.headers["authorization"] for each in server.requests} == {"Bearer abc"}
