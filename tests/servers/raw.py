"""A real MCP server over bare sockets, which can misbehave in every way that HTTP allows.

    with raw_server(capabilities={"resources": {}}) as server:
        server.on("resources/read", lambda request: {"contents": []})
        ... server.url ...
        assert server.count("resources/read") == 1

It runs on a loop in a thread of its own, so synchronous and asynchronous tests can use it.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from workspaces.background import BackgroundLoop

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
MAX_HEAD_BYTES = 1024 * 1024
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"


@dataclass
class Request:
    """One HTTP request as it arrived."""

    verb: str
    path: str
    headers: dict[str, str]
    message: dict[str, Any]

    @property
    def method(self) -> str:
        return str(self.message.get("method", self.verb))

    @property
    def params(self) -> dict[str, Any]:
        params: dict[str, Any] = self.message.get("params", {})
        return params

    @property
    def is_modern(self) -> bool:
        return self.headers.get("mcp-protocol-version") == MODERN


@dataclass
class Reply:
    """One HTTP response. A body that is an iterator is sent without a length, then the end."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | AsyncIterator[bytes] = b""
    content_type: str | None = "application/json"


@dataclass
class Error:
    """A JSON-RPC error, in a response with this status."""

    code: int
    message: str
    data: object = None
    status: int = 200


class Drop(Exception):
    """Raised by a handler: the socket is closed without another byte."""


Outcome = dict[str, Any] | Reply | Error
Handler = Callable[[Request], Any]


class RawServer:
    """See the module. `requests` has everything that arrived, in order."""

    def __init__(
        self,
        *,
        revisions: tuple[str, ...] = (MODERN,),
        capabilities: Mapping[str, Any] | None = None,
        keeps_sessions: bool = False,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.revisions = revisions
        self.capabilities: Any = {"resources": {}} if capabilities is None else capabilities
        self.keeps_sessions = keeps_sessions
        self.requests: list[Request] = []
        self.sessions: set[str] = set()
        self.intercept: Handler | None = None
        """Asked first, for every request; None from it means the ordinary answer."""
        self.connections = 0
        self.port = 0
        self.tls = tls
        self._writers: list[asyncio.StreamWriter] = []
        self._serving: list[asyncio.Task[None]] = []
        self._handlers: dict[str, Handler] = {"ping": lambda _: {}}

    @property
    def url(self) -> str:
        scheme = "https" if self.tls else "http"
        return f"{scheme}://127.0.0.1:{self.port}/mcp"

    @property
    def open_connections(self) -> int:
        """Sockets that are open now."""
        return sum(not each.done() for each in self._serving)

    def on(self, method: str, handler: Handler | dict[str, Any]) -> None:
        """Answer a method with what the handler gives, or with always the same result."""
        self._handlers[method] = handler if callable(handler) else lambda _: handler

    def seen(self, method: str) -> list[Request]:
        """The requests of a JSON-RPC method, or of a verb such as GET."""
        return [request for request in self.requests if request.method == method]

    def count(self, method: str) -> int:
        return len(self.seen(method))

    async def outcome_of(self, request: Request) -> Outcome:
        for handler in (self.intercept, self._ordinary):
            if handler is not None:
                outcome: Outcome | None = await _settled(handler(request))
                if outcome is not None:
                    return outcome
        raise AssertionError("unreachable")

    async def _ordinary(self, request: Request) -> Outcome:
        if request.verb == "DELETE":
            self.sessions.discard(request.headers.get("mcp-session-id", ""))
            return Reply(200)
        if request.verb != "POST":
            return Reply(405)
        if "id" not in request.message:
            return Reply(202)
        if request.method in ("server/discover", "initialize"):
            return self._handshake(request)
        if self.keeps_sessions and not request.is_modern:
            session = request.headers.get("mcp-session-id")
            if session not in self.sessions:
                return Error(-32001, "Session not found", status=404)
        handler = self._handlers.get(request.method)
        if handler is None:
            return Error(-32601, "Method not found")
        outcome: Outcome = await _settled(handler(request))
        return outcome

    def _handshake(self, request: Request) -> Outcome:
        if request.method == "server/discover":
            if MODERN not in self.revisions:
                return Error(-32601, "Method not found")
            return {
                "supportedVersions": [MODERN],
                "capabilities": self.capabilities,
                "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "raw", "version": "1.0"}},
            }
        legacy = [revision for revision in self.revisions if revision != MODERN]
        if not legacy:
            return Error(-32022, "Unsupported", {"supported": [MODERN], "requested": LEGACY}, 400)
        result = {
            "protocolVersion": legacy[0],
            "capabilities": self.capabilities,
            "serverInfo": {"name": "raw", "version": "1.0"},
        }
        reply = Reply(body=answer(request, result))
        if self.keeps_sessions:
            session = f"session-{len(self.seen('initialize'))}"
            self.sessions.add(session)
            reply.headers["mcp-session-id"] = session
        return reply

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Begin with a connection. What was accepted can be closed, served or not."""
        self._writers.append(writer)
        self._serving.append(asyncio.create_task(self._serve(reader, writer)))

    def hang_up(self) -> None:
        for writer in self._writers:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while request := await _read_request(reader):
                self.requests.append(request)
                reply = _as_reply(request, await self.outcome_of(request))
                if not await _write_reply(writer, reply):
                    break
        except (ConnectionError, asyncio.IncompleteReadError, Drop):
            pass
        finally:
            writer.close()


def answer(request: Request, result: Mapping[str, Any]) -> bytes:
    """The JSON-RPC answer with a result; with what the modern era asks for beside it."""
    if request.is_modern:
        result = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **result}
    message = {"jsonrpc": "2.0", "id": request.message["id"], "result": result}
    return json.dumps(message).encode()


def event(data: bytes, **fields: str) -> bytes:
    """One server-sent event."""
    lines = [f"{name}: {value}".encode() for name, value in fields.items()]
    return b"\n".join([*lines, b"data: " + data]) + b"\n\n"


def stream(*pieces: bytes) -> Reply:
    """An event stream of these pieces, which then ends."""

    async def body() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    return Reply(body=body(), content_type="text/event-stream")


async def forever() -> Any:
    """For a handler that never answers: ends with the connection or the server."""
    await asyncio.Event().wait()


@contextlib.contextmanager
def raw_server(**settings: Any) -> Iterator[RawServer]:
    """A server on a free port of the loopback interface, until the block ends."""
    server = RawServer(**settings)
    loop = BackgroundLoop("raw-server")

    async def start() -> asyncio.Server:
        return await asyncio.start_server(
            server.accept, "127.0.0.1", 0, limit=MAX_HEAD_BYTES, ssl=server.tls
        )

    async def stop() -> None:
        listening.close()
        server.hang_up()

    listening = loop.run(start(), 5)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        loop.run(stop(), 5)
        loop.close()


async def _settled(outcome: Any) -> Any:
    return await outcome if inspect.isawaitable(outcome) else outcome


def _as_reply(request: Request, outcome: Outcome) -> Reply:
    if isinstance(outcome, Error):
        error = {"code": outcome.code, "message": outcome.message}
        if outcome.data is not None:
            error["data"] = outcome.data
        message = {"jsonrpc": "2.0", "id": request.message.get("id"), "error": error}
        return Reply(outcome.status, body=json.dumps(message).encode())
    return outcome if isinstance(outcome, Reply) else Reply(body=answer(request, outcome))


async def _read_request(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").splitlines()
    verb, path, _ = first.split(" ")
    headers = {
        name.lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines if line)
    }
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(verb, path, headers, json.loads(body) if body else {})


async def _write_reply(writer: asyncio.StreamWriter, reply: Reply) -> bool:
    """Send a response; False when the connection cannot be used any more."""
    headers = dict(reply.headers)
    if reply.content_type is not None:
        headers.setdefault("content-type", reply.content_type)
    if isinstance(reply.body, bytes):
        headers.setdefault("content-length", str(len(reply.body)))
    lines = [f"HTTP/1.1 {reply.status} Status", *(f"{n}: {v}" for n, v in headers.items())]
    writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
    if isinstance(reply.body, bytes):
        writer.write(reply.body)
        await writer.drain()
        return True
    async for piece in reply.body:
        writer.write(piece)
        await writer.drain()
    return False
