"""Outside clients in tests: the site on a real port, workspaces with servers, and SDK clients."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime

import httpx2
import uvicorn
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from connectors.actions import add_connector, connect_connector
from connectors.models import Connector, Listing, ToolCall
from connectors.tasks import check_connector, list_connectors
from connectors.traces import recorder
from examples import outbound_2025
from examples.crm import Crm, build_server
from overview.asgi import application
from tests.servers.raw import raw_server
from workspaces.actions import create_token

DECLARATION = "ai.nimblebrain/resource-arguments"
MODES = ["legacy", "2026-07-28"]
REVISIONS = {"legacy": "2025-11-25", "2026-07-28": "2026-07-28"}


def site_on_a_port():
    """The whole ASGI application on a port; gives its address."""
    return serve(application)


@contextmanager
def serve(app):
    """An ASGI application under uvicorn in a thread; gives its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_level="error", access_log=False, ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    deadline = time.monotonic() + 10
    while not server.started and time.monotonic() < deadline:
        time.sleep(0.005)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()


def install(owner, slug, url="http://127.0.0.1:9/mcp", *, listings=None, secrets=(), **changes):
    """A ready connector of a workspace, or of a person, with what it listed last.

    listings: by kind, e.g. {"tools": [...], "templates": ["crm://signals/{id}"]}.
    """
    now = datetime.now(UTC)
    facts = {
        "name": slug.capitalize(),
        "asked_at": now,
        "connection": "ready",
        "first_ready_at": now,
        "capabilities": {"resources": {}, "tools": {}},
    }
    whose = "owner" if hasattr(owner, "email") else "workspace"
    connector = Connector(slug=slug, url=url, **{whose: owner}, **{**facts, **changes})
    add_connector(connector, list(secrets), by=None)
    for kind, entries in (listings or {}).items():
        relist(connector, kind, entries)
    return connector


@contextmanager
def connected_examples(workspace, by):
    """Both servers of the specification's example, connected as the worker does it."""
    crm = build_server(Crm(0)).streamable_http_app()
    with serve(crm) as crm_site, serve(outbound_2025.app) as outbound_site:
        for slug, site in [("crm", crm_site), ("outbound", outbound_site)]:
            connect(workspace, slug, f"{site}/mcp", by=by)
        yield


def connect(workspace, slug, url, *, by):
    """Add and connect a server; what it is and lists is taken from itself."""
    connector = Connector(workspace=workspace, slug=slug, name=slug.upper(), url=url)
    add_connector(connector, [], by=by)
    connect_connector(connector, by=by)
    check_connector(connector.pk)
    list_connectors([connector.pk])
    return connector


def relist(connector, kind, entries):
    if kind == "templates":
        entries = [
            {"uriTemplate": each, "name": each} if isinstance(each, str) else each
            for each in entries
        ]
    if kind == "tools":
        entries = [tool(each) if isinstance(each, str) else each for each in entries]
    Listing.objects.filter(connector=connector, kind=kind).update(
        entries=entries, taken_at=datetime.now(UTC), failed_at=None, epoch=connector.epoch
    )


@contextmanager
def tool_server():
    """A server with tools, each of which says "done"."""
    with raw_server(capabilities={"tools": {}}) as running:
        running.on("tools/call", text("done"))
        yield running


def tool(name, *, cites=None, **changes):
    """A tools/list entry. cites: argument name to the schemes that it declares."""
    entry = {"name": name, "description": name, "inputSchema": {"type": "object"}}
    if cites:
        arguments = {argument: {"schemes": schemes} for argument, schemes in cites.items()}
        entry["_meta"] = {DECLARATION: {"arguments": arguments}}
    return {**entry, **changes}


def text(words):
    """A tool's result."""
    return {"content": [{"type": "text", "text": words}], "isError": False}


def resource(uri, words, **more):
    """The result of a resource's read."""
    return {"contents": [{"uri": uri, "text": words, **more}]}


def token_for(workspace, user, **changes):
    return create_token(workspace, user, "agent", **changes)[1]


class Outside:
    """An outside agent with a token, on a site."""

    def __init__(self, site, workspace, token):
        self.url = f"{site}/mcp/{workspace}"
        self.token = token

    @asynccontextmanager
    async def client(self, mode="auto"):
        headers = {"Authorization": f"Bearer {self.token}"}
        async with (
            asyncio.timeout(20),
            httpx2.AsyncClient(headers=headers, timeout=20, trust_env=False) as http,
            Client(
                streamable_http_client(self.url, http_client=http), mode=mode, cache=None
            ) as client,
        ):
            yield client

    def talk(self, conversation, mode="auto"):
        """Hold a conversation with the endpoint as the SDK's client; what it gave."""

        async def hold():
            async with self.client(mode) as client:
                try:
                    return await conversation(client)
                except MCPError as error:
                    # Raised in there it would come out wrapped in the client's task groups.
                    return error

        outcome = asyncio.run(hold())
        if isinstance(outcome, MCPError):
            raise outcome
        return outcome

    def call(self, name, arguments=None, *, mode="auto", **options):
        return self.talk(lambda client: client.call_tool(name, arguments or {}, **options), mode)

    def names(self, mode="auto"):
        async def list_names(client):
            return [each.name for each in (await client.list_tools()).tools]

        return self.talk(list_names, mode)

    def post(self, method="tools/list", params=None, *, body=None, **headers):
        """One raw request of the 2026 era; the HTTP response."""
        envelope = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        params = {**(params or {}), "_meta": {**envelope, **(params or {}).get("_meta", {})}}
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        sent = {
            "authorization": f"Bearer {self.token}",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": "2026-07-28",
            "mcp-method": method,
            **({"mcp-name": params["name"]} if "name" in params else {}),
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        content = json.dumps(message).encode() if body is None else body
        kept = {name: value for name, value in sent.items() if value is not None}
        return httpx2.post(self.url, content=content, headers=kept, timeout=20, trust_env=False)


def words_of(result):
    """All text of a tool result."""
    return "\n".join(each.text for each in result.content if each.type == "text")


def traces():
    """Every trace, oldest first, once what waits is written."""
    assert recorder.flush()
    return list(ToolCall.objects.order_by("started_at").prefetch_related("events"))


def delivered(server):
    """The host's key in the last tools/call that a server saw; None when it is absent."""
    return server.seen("tools/call")[-1].params.get("_meta", {}).get(DECLARATION)


def eventually(look, seconds=5):
    """Look until there is something to see, for at most so long."""
    deadline = time.monotonic() + seconds
    while not (found := look()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return found
