"""MCP servers as tools for a program of one's own: `load_mcp`, usable without the site.

Async; everything runs on the caller's event loop. No Django.
Source: Resource tools, "loadMcp" and `McpSource.resourceTools`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from connectors.resource_tools.text import Listing, ToolResult, listed, read_text, refused
from connectors.resource_tools.tools import LIST_RESOURCES, READ_FROM
from connectors.sessions import Fault, Limits, Sessions, Target

TIMEOUT_MS: Final = 30_000

Arguments = Mapping[str, Any]
Execute = Callable[[Arguments], Awaitable[ToolResult]]


@dataclass(frozen=True, slots=True)
class Hints:
    """What a tool says of itself: MCP's annotations, untrusted when a server gave them."""

    read_only: bool = False
    destructive: bool = True
    idempotent: bool = False


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool to offer to a model."""

    name: str
    description: str
    input_schema: Mapping[str, Any] = field(repr=False)
    hints: Hints
    execute: Execute = field(repr=False)
    """Call it. Whatever goes wrong is a result with `is_error`; nothing is raised."""


@dataclass(frozen=True, slots=True)
class Server:
    """One configured server. problem: why it is not connected, "" when it is."""

    name: str
    target: Target
    timeout_seconds: float
    problem: str = ""


class Source:
    """Loaded servers: their tools, and on request the two resource tools.

    A server that could not be connected is kept with its problem, and harms no other.
    """

    def __init__(self, sessions: Sessions, servers: Mapping[str, Server]) -> None:
        self._sessions = sessions
        self._servers = dict(servers)
        self._closed = asyncio.Event()
        self.tools: list[Tool] = []

    @property
    def status(self) -> dict[str, str]:
        """By server: "connected", or why it is not."""
        return {name: each.problem or "connected" for name, each in self._servers.items()}

    def resource_tools(self) -> list[Tool]:
        """Give list_mcp_resources and read_mcp_resource. Nobody gets them who does not ask."""
        return [
            _tool(LIST_RESOURCES, LIST_RESOURCES["name"], self._open(self._list_resources)),
            _tool(READ_FROM, READ_FROM["name"], self._open(self._read_resource)),
        ]

    async def close(self) -> None:
        """Disconnect. The tools answer with errors from now on."""
        self._closed.set()
        await self._sessions.close()

    async def load(self) -> None:
        """Connect to all servers at once and take their tools, in the configuration's order."""
        loaded = await asyncio.gather(*map(self._load, list(self._servers.values())))
        self.tools = [tool for tools in loaded for tool in tools]

    async def _load(self, server: Server) -> list[Tool]:
        if server.problem:
            return []
        target, seconds = server.target, server.timeout_seconds
        connected = await self._sessions.connect(target, seconds)
        if isinstance(connected, Fault):
            return self._without(server, connected)
        if not isinstance(connected.capabilities.get("tools"), dict):
            return []
        found = await self._sessions.list_entries(target, "tools/list", seconds)
        if isinstance(found, Fault):
            return self._without(server, found)
        return [tool for entry in found.entries if (tool := self._tool_of(server, entry))]

    def _without(self, server: Server, fault: Fault) -> list[Tool]:
        self._servers[server.name] = replace(server, problem=fault.message)
        return []

    def _tool_of(self, server: Server, entry: object) -> Tool | None:
        name = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(entry, dict) or not isinstance(name, str):
            return None
        hints = _hints(entry)

        async def call(arguments: Arguments) -> ToolResult:
            outcome = await self._sessions.call_tool(
                server.target,
                name,
                arguments,
                timeout=server.timeout_seconds,
                is_repeatable=hints.read_only or hints.idempotent,
            )
            return refused(outcome.message) if isinstance(outcome, Fault) else _result(outcome)

        return _tool(entry, f"{server.name}_{name}", self._open(call))

    def _open(self, execute: Execute) -> Execute:
        """A call that ends when the source is closed, before it or in its midst (L-023, L-024)."""

        async def run(arguments: Arguments) -> ToolResult:
            if self._closed.is_set():
                return refused("The source is closed.")
            call = asyncio.ensure_future(execute(arguments))
            closing = asyncio.ensure_future(self._closed.wait())
            try:
                await asyncio.wait([call, closing], return_when=asyncio.FIRST_COMPLETED)
                return call.result() if call.done() else refused("The source was closed.")
            finally:
                call.cancel()
                closing.cancel()

        return run

    async def _list_resources(self, arguments: Arguments) -> ToolResult:
        wanted = arguments.get("server")
        if wanted is not None:
            server = self._server(wanted)
            if isinstance(server, ToolResult):
                return server
            return listed({server.name: await self._resources_of(server)})
        servers = [each for each in self._servers.values() if not each.problem]
        listings = await asyncio.gather(*map(self._resources_of, servers))
        return listed({each.name: found for each, found in zip(servers, listings, strict=True)})

    async def _resources_of(self, server: Server) -> Listing:
        connected = await self._sessions.connect(server.target, server.timeout_seconds)
        if isinstance(connected, Fault):
            return connected.message
        if not isinstance(connected.capabilities.get("resources"), dict):
            return []
        found = await self._sessions.list_entries(
            server.target, "resources/list", server.timeout_seconds
        )
        return found.message if isinstance(found, Fault) else found.entries

    async def _read_resource(self, arguments: Arguments) -> ToolResult:
        server, uri = self._server(arguments.get("server")), arguments.get("uri")
        if isinstance(server, ToolResult):
            return server
        if not isinstance(uri, str):
            return refused("`uri` has to be text.")
        result = await self._sessions.read_resource(server.target, uri, server.timeout_seconds)
        return refused(result.message) if isinstance(result, Fault) else read_text(result)

    def _server(self, name: object) -> Server | ToolResult:
        server = self._servers.get(name) if isinstance(name, str) else None
        if server is None:
            return refused(f"There is no server {name!r}.")
        if server.problem:
            return refused(f"{server.name} is not connected: {server.problem}")
        return server


async def load_mcp(config: Mapping[str, Mapping[str, Any]]) -> Source:
    """Connect to MCP servers and give what they offer.

    config: by the server's name, either {"command": [...], "environment": {...}} for one that is
    started here and spoken to over stdio, or {"url": ..., "headers": {...}}; with each,
    "timeout" in milliseconds for connecting and for every request, and "enabled": False to leave
    it out. The configuration is its operator's own, so any address in it is dialled.
    Raises: ValueError when the configuration makes no sense.
    """
    servers = {
        name: _server(position, name, each) for position, (name, each) in enumerate(config.items())
    }
    longest = max((each.timeout_seconds for each in servers.values()), default=0)
    sessions = Sessions(
        Limits(connect_seconds=longest or TIMEOUT_MS / 1000),
        claims=lambda target: {},
        is_allowed=lambda address: True,
    )
    source = Source(sessions, servers)
    try:
        await source.load()
    except BaseException:
        await source.close()
        raise
    return source


def _server(position: int, name: str, config: Mapping[str, Any]) -> Server:
    command, url = config.get("command"), config.get("url")
    if (command is None) == (url is None):
        raise ValueError(f"{name}: give either a command or a url.")
    if command is not None and (isinstance(command, str) or not command):
        raise ValueError(f"{name}: a command is a list of its words.")
    target = Target(
        connector_id=position,
        generation=1,
        url=url or "",
        headers=tuple(config.get("headers", {}).items()),
        command=tuple(command) if command is not None else None,
        environment=tuple(config.get("environment", {}).items()),
    )
    is_enabled = config.get("enabled", True) and not config.get("disabled", False)
    problem = "" if is_enabled else "It is disabled."
    return Server(name, target, config.get("timeout", TIMEOUT_MS) / 1000, problem)


def _tool(entry: Mapping[str, Any], name: str, execute: Execute) -> Tool:
    description, schema = entry.get("description"), entry.get("inputSchema")
    return Tool(
        name=name,
        description=description if isinstance(description, str) else "",
        input_schema=schema if isinstance(schema, dict) else {"type": "object"},
        hints=_hints(entry),
        execute=execute,
    )


def _hints(entry: Mapping[str, Any]) -> Hints:
    hints = entry.get("annotations")
    given = hints if isinstance(hints, dict) else {}
    is_read_only = given.get("readOnlyHint") is True
    return Hints(
        read_only=is_read_only,
        destructive=not is_read_only and given.get("destructiveHint") is not False,
        idempotent=given.get("idempotentHint") is True,
    )


def _result(raw: Mapping[str, Any]) -> ToolResult:
    """A tool's result as text: its structured content where there is some."""
    is_error = raw.get("isError") is True
    structured = raw.get("structuredContent")
    if structured is not None and not is_error:
        return ToolResult(json.dumps(structured, ensure_ascii=False))
    content = raw.get("content")
    texts = [
        each["text"]
        for each in (content if isinstance(content, list) else [])
        if isinstance(each, dict) and isinstance(each.get("text"), str)
    ]
    return ToolResult("\n".join(texts), is_error)
