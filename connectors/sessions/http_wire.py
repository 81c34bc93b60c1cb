"""Streamable HTTP to one endpoint, in both eras.

Source: MCP 2026-07-28 and 2025-11-25, "Transports", "Streamable HTTP".
No GET stream is ever opened for itself: what it may bring (list_changed) is nothing that the host
relies on, and servers answer it in every wrong way there is (D2, S17).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpcore2
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from connectors.protocol.challenges import missing_scope
from connectors.sessions import http_rules
from connectors.sessions.body import bounded, decoded, read, too_large
from connectors.sessions.endpoint import MAX_IGNORED_BYTES, Endpoint
from connectors.sessions.event_stream import Event, EventTooLarge, events
from connectors.sessions.faults import Peer, WireFault, fault
from connectors.sessions.guard import IsAllowed
from connectors.sessions.jsonrpc import Answer
from connectors.sessions.values import Fault, FaultKind, Limits, Target
from connectors.sessions.wire import (
    HANDSHAKE,
    INITIALIZE,
    LISTEN,
    Exchange,
    OnNotification,
    Wire,
    id_of,
    messages_of,
    result_of,
)

SESSION_ID = "mcp-session-id"
VERSION = "mcp-protocol-version"
RESUME_ATTEMPTS = 2
RESUME_WAIT_MS = 1000
MIN_RESUME_WAIT_MS = 100

_CUT = (httpcore2.NetworkError, httpcore2.RemoteProtocolError)


class HttpWire(Wire):
    """Requests to one endpoint, over sockets that no other connection uses."""

    def __init__(self, target: Target, limits: Limits, peer: Peer, is_allowed: IsAllowed) -> None:
        super().__init__(limits, peer)
        self._endpoint = Endpoint(target, limits, is_allowed)
        self._authorization = target.authorization
        self._session_id: str | None = None
        self._version: str | None = None
        self._withdrawals: set[asyncio.Task[None]] = set()

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        opts: CallOptions,
        on_notification: OnNotification | None = None,
    ) -> Answer:
        exchange, message = self.exchange(method, params, opts, on_notification)
        headers = self._protocol_headers(method, opts)
        exchange.had_session = SESSION_ID in headers
        exchange.is_modern = headers.get(VERSION) in MODERN_PROTOCOL_VERSIONS
        try:
            return await self._ask(exchange, headers, message)
        except asyncio.CancelledError:
            self._withdraw(exchange)
            raise

    async def _ask(
        self, exchange: Exchange, headers: dict[str, str], message: dict[str, Any]
    ) -> Answer:
        """Send a request, and again with a newer credential than the one that was refused.

        A refused request had no effect, so that this holds for tool calls too.
        """
        refused: str | None = None
        for is_last in (False, False, True):
            credential = await self._credential(refused)
            sent = {**headers, "authorization": credential} if credential else headers
            is_endless = exchange.method == LISTEN
            async with self._endpoint.send(
                "POST", sent, message, is_endless=is_endless
            ) as response:
                if response.status != 401 or credential is None or is_last:
                    return await self._answer(response, exchange, headers)
                refused = credential
        raise AssertionError("The last answer is taken as it is.")

    async def _credential(self, refused: str | None) -> str | None:
        """The current value of a credential that changes; None where it does not.

        Raises: WireFault when there is none to be had.
        """
        if self._authorization is None:
            return None
        value = await self._authorization.value(refused)
        if isinstance(value, Fault):
            raise WireFault(value)
        self.peer.hide(value)
        self._endpoint.headers["authorization"] = value
        return value

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params:
            message["params"] = params
        await self._tell(message, self._protocol_headers(method, opts or {}))

    async def reply(self, message: dict[str, Any]) -> None:
        await self._tell(message, self._protocol_headers("", {}))

    async def _tell(self, message: dict[str, Any], headers: Mapping[str, str]) -> None:
        """Send what has no answer. A fault is left to the next request, which meets it too."""
        with contextlib.suppress(WireFault):
            async with self._endpoint.send("POST", headers, message) as response:
                await read(response, MAX_IGNORED_BYTES)

    async def aclose(self) -> None:
        """End the server's session, if it keeps one, and close the sockets."""
        for task in self._withdrawals:
            task.cancel()
        try:
            if self._session_id is not None:
                with contextlib.suppress(WireFault, TimeoutError):
                    async with (
                        asyncio.timeout(self.limits.close_seconds),
                        self._endpoint.send("DELETE", self._protocol_headers("", {})),
                    ):
                        pass
        finally:
            await self._endpoint.aclose()

    def _protocol_headers(self, method: str, opts: CallOptions) -> dict[str, str]:
        """The headers of the era: as stamped by the SDK, or as last stamped."""
        if method == INITIALIZE:
            # The probe's revision, and an earlier session, have no say in this handshake.
            self._version = self._session_id = None
        headers = {name.lower(): value for name, value in opts.get("headers", {}).items()}
        self._version = headers.get(VERSION, self._version)
        if self._version is not None:
            headers[VERSION] = self._version
        if self._session_id is not None:
            headers[SESSION_ID] = self._session_id
        return headers

    async def _answer(
        self, response: httpcore2.Response, exchange: Exchange, headers: Mapping[str, str]
    ) -> Answer:
        media_type = http_rules.media_type_of(response)
        if response.status < 300:
            if exchange.method == INITIALIZE:
                self._session_id = http_rules.header_of(response, SESSION_ID.encode())
            if media_type == "text/event-stream":
                return await self._streamed_answer(response, exchange, headers)
        raw = await read(response, exchange.max_bytes)
        if response.status == 403 and self._authorization is not None:
            challenge = http_rules.header_of(response, b"www-authenticate")
            if scope := missing_scope(challenge):
                await self._authorization.lacks(scope)
        if response.status >= 400:
            raise self._refusal(response, _error_in(raw), exchange)
        if media_type != "application/json":
            said = self.peer.text(media_type, 60) or f"HTTP {response.status}"
            raise fault(FaultKind.PROTOCOL, f"The server answered with {said} instead of JSON.")
        answer = await self._accept(raw, response, exchange)
        if answer is None:
            raise fault(FaultKind.PROTOCOL, "The server answered another request than this one.")
        return answer

    async def _streamed_answer(
        self, response: httpcore2.Response, exchange: Exchange, headers: Mapping[str, str]
    ) -> Answer:
        """The answer in a stream of events, which a 2025 server may let us resume by GET.

        Source: 2025-11-25, "Resumability and Redelivery".
        """
        answer, last = await self._read_events(response, exchange)
        failures = 0
        while answer is None:
            if last.id is None or exchange.is_modern or failures > RESUME_ATTEMPTS:
                raise fault(FaultKind.CLOSED, "The server ended its answer before the result.")
            wait_ms = RESUME_WAIT_MS if last.retry_ms is None else last.retry_ms
            await asyncio.sleep(max(wait_ms, MIN_RESUME_WAIT_MS) / 1000)
            position = {"last-event-id": last.id.decode("utf-8", "replace")}
            async with self._endpoint.send("GET", {**headers, **position}) as more:
                answer, reached = await self._read_events(more, exchange)
            failures = failures + 1 if reached.id is None else 0
            last = last if reached.id is None else reached
        return answer

    async def _read_events(
        self, response: httpcore2.Response, exchange: Exchange
    ) -> tuple[Answer | None, Event]:
        """Read until the answer or the end; with the last event that can be resumed after."""
        last = Event(b"")
        if http_rules.media_type_of(response) != "text/event-stream":
            return None, last
        is_endless = exchange.method == LISTEN
        pieces = decoded(response) if is_endless else bounded(response, exchange.max_bytes)
        try:
            async for event in events(_until_cut(pieces), exchange.max_bytes):
                if event.is_whole and event.id is not None:
                    last = event
                if event.name != b"message" or not event.data:
                    continue
                try:
                    answer = await self._accept(event.data, response, exchange)
                except WireFault:
                    if event.is_whole:
                        raise
                    answer = None  # A fragment of an answer is no answer.
                if answer is not None:
                    return answer, last
        except EventTooLarge:
            raise too_large(exchange.max_bytes) from None
        return None, last

    async def _accept(
        self, raw: bytes, response: httpcore2.Response, exchange: Exchange
    ) -> Answer | None:
        """Take the messages of a body or an event; the answer, if it was among them."""
        messages, body = messages_of(raw)
        for message in messages:
            if "method" in message:
                await self.take(message, exchange)
            elif _is_answer(message, exchange):
                try:
                    return Answer(result_of(message), body.is_suspect, len(raw))
                except MCPError as error:
                    raise self._refusal(response, error, exchange) from None
        return None

    def _refusal(
        self, response: httpcore2.Response, error: MCPError | None, exchange: Exchange
    ) -> Exception:
        refusal = http_rules.refusal_of(response, error, exchange, self.peer)
        if isinstance(refusal, WireFault) and refusal.fault.kind is FaultKind.SESSION_LOST:
            self._session_id = None
        return refusal

    def _withdraw(self, exchange: Exchange) -> None:
        """Tell a 2025 server that nobody waits any more; to a later one the closed stream says it.

        Source: 2025-11-25, "Cancellation"; a handshake must not be cancelled.
        """
        if exchange.is_modern or exchange.method in HANDSHAKE:
            return

        async def tell() -> None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.limits.close_seconds):
                    await self.notify("notifications/cancelled", {"requestId": exchange.id})

        task = asyncio.create_task(tell())
        self._withdrawals.add(task)
        task.add_done_callback(self._withdrawals.discard)


def _error_in(raw: bytes) -> MCPError | None:
    """The JSON-RPC error in the body of a refusal, if there is one."""
    try:
        for message in messages_of(raw)[0]:
            result_of(message)
    except MCPError as error:
        return error
    except WireFault:
        pass
    return None


def _is_answer(message: dict[str, Any], exchange: Exchange) -> bool:
    if message.get("id") is None:
        return "error" in message  # The server could not even read the id.
    return id_of(message["id"]) == exchange.id


async def _until_cut(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The pieces, with a dropped connection as an ordinary end."""
    with contextlib.suppress(*_CUT):
        async for piece in pieces:
            yield piece
