"""The sessions of one process: at most one connection per connector and credential.

Everything runs on one event loop. A method gives a value or a `Fault`; it raises for our own
mistakes only. When a failed connection is tried again is not decided here: a call that fails
to connect says so to everybody who waited, and the next call tries afresh.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError

from connectors.sessions import calls
from connectors.sessions.connection import Connection, Opened
from connectors.sessions.faults import WireFault
from connectors.sessions.guard import IsAllowed
from connectors.sessions.values import Connected, Fault, FaultKind, Limits, Listed, Target
from workspaces import spans

T = TypeVar("T")
Key = tuple[int, int]
Claims = Callable[[Target], dict[str, dict[str, Any]]]
Work = Callable[[Opened], Awaitable[T]]


class Sessions:
    """Connections to servers, opened when first used and closed when idle.

    claims: the extensions that the host claims on a connection, with their settings.
    is_allowed: whether an address may be dialled; asked for every address that is.
    """

    def __init__(
        self,
        limits: Limits,
        *,
        claims: Claims,
        is_allowed: IsAllowed,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits, self._claims, self._is_allowed = limits, claims, is_allowed
        self._clock = clock
        self._current: dict[Key, Connection] = {}
        self._alive: set[Connection] = set()
        self._losses: dict[Key, tuple[float, str | None]] = {}
        """When a session was last lost, and the discovery that it refuted."""
        self._is_closed = False

    async def connect(self, target: Target, timeout: float) -> Connected | Fault:
        """Open the connection, if it is not open; with a known discovery, without a request."""

        async def work(opened: Opened) -> Connected:
            return opened.connected

        return await self._call(target, "connect", work, timeout)

    async def ping(self, target: Target, timeout: float) -> Connected | Fault:
        """Ask for a sign of life, connecting first where needed.

        A server of the modern era says anew what it is, so its capabilities are the current ones.
        """
        return await self._call(target, "ping", calls.ping, timeout)

    async def read_resource(
        self, target: Target, uri: str, timeout: float
    ) -> dict[str, Any] | Fault:
        """The result of `resources/read`, raw and untrusted."""

        async def work(opened: Opened) -> dict[str, Any]:
            return calls.whole(await opened.ask("resources/read", {"uri": uri}))

        return await self._call(target, "resources/read", work, timeout)

    async def list_entries(self, target: Target, method: str, timeout: float) -> Listed | Fault:
        """All pages of `resources/list`, `resources/templates/list` or `tools/list`.

        A page that fails makes the whole listing fail (F-038).
        """

        async def work(opened: Opened) -> Listed:
            return await calls.list_entries(opened, method, self._limits)

        return await self._call(target, method, work, timeout)

    async def call_tool(
        self,
        target: Target,
        name: str,
        arguments: Mapping[str, Any],
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float,
        is_repeatable: bool,
        client_capabilities: dict[str, Any] | None = None,
        on_progress: ProgressFnT | None = None,
    ) -> dict[str, Any] | Fault:
        """The result of `tools/call`, raw: an error of the tool's own is a result too.

        meta: the call's `_meta`, beside which the envelope of the era is put.
        is_repeatable: the tool is marked read-only or idempotent. Any other call is made once.
        client_capabilities: claimed for this call on a 2026 connection, instead of the host's.
        """

        async def work(opened: Opened) -> dict[str, Any]:
            return await calls.call_tool(
                opened,
                name,
                arguments,
                meta=meta or {},
                client_capabilities=client_capabilities,
                on_progress=on_progress,
                limits=self._limits,
            )

        return await self._call(target, "tools/call", work, timeout, is_repeatable=is_repeatable)

    async def listen(
        self,
        target: Target,
        uris: Sequence[str],
        on_change: Callable[[str | None], None],
        on_open: Callable[[], None] = lambda: None,
    ) -> Fault | None:
        """Hold a subscription until it ends: None when the server ended it in good order.

        on_change: called with a URI that changed, or None when the listing did. The host must
        not depend on it: changes before the subscription and after its end are not told.
        on_open: called when the server has agreed to tell.
        """

        async def work(opened: Opened) -> None:
            await calls.listen(opened, uris, on_change, on_open)

        return await self._repaired(target, work, None, is_repeatable=False)

    @property
    def keys(self) -> list[Key]:
        """The connector and generation of each connection there is. From any thread."""
        return [connection.target.key for connection in list(self._alive)]

    def retire(self, connector_id: int, before: int) -> None:
        """Close a connector's connections of generations before this one, each as soon as nobody
        uses it."""
        for connection in list(self._alive):
            target = connection.target
            if target.connector_id == connector_id and target.generation < before:
                self._losses.pop(target.key, None)
                connection.retire()

    async def drop(self, connector_id: int, before: float = math.inf) -> None:
        """Close a connector's connections of generations before this one; what is under way on
        them fails."""

        def goes(key: Key) -> bool:
            return key[0] == connector_id and key[1] < before

        for key in filter(goes, list(self._losses)):
            del self._losses[key]
        await self._end([each for each in self._alive if goes(each.target.key)])

    async def close(self) -> None:
        """Close everything; later calls give a `Fault`."""
        self._is_closed = True
        await self._end(list(self._alive))

    async def _end(self, connections: list[Connection]) -> None:
        for connection in connections:
            connection.is_dropped = True
            connection.stop()
        if connections:
            await asyncio.wait([connection.owner for connection in connections])

    async def _call(
        self,
        target: Target,
        method: str,
        work: Work[T],
        timeout: float,
        *,
        is_repeatable: bool = True,
    ) -> T | Fault:
        attributes: dict[str, str | int] = {
            "mcp.method.name": method,
            "connector.id": target.connector_id,
        }
        with spans.span(method, spans.SpanKind.CLIENT, attributes) as around:
            outcome = await self._repaired(target, work, timeout, is_repeatable=is_repeatable)
            if not isinstance(outcome, Fault):
                spans.settle(around, "ok")
                return outcome
            spans.settle(around, outcome.kind, is_error=True)
            if outcome.http_status is not None:
                around.set_attribute("http.response.status_code", outcome.http_status)
            return outcome

    async def _repaired(
        self, target: Target, work: Work[T], timeout: float | None, *, is_repeatable: bool
    ) -> T | Fault:
        """What came of it, on a second connection where the first was lost."""
        if self._is_closed:
            return Fault(FaultKind.CLOSED, "This process is stopping.")
        try:
            async with asyncio.timeout(timeout):
                outcome, connection = await self._attempt(target, work)
                if isinstance(outcome, Fault) and connection is not None:
                    if is_repeatable and _is_repairable(outcome, connection):
                        outcome, _ = await self._attempt(target, work)
                    elif outcome.kind is FaultKind.SESSION_LOST:
                        outcome = _explained(outcome, connection)
                return outcome
        except TimeoutError:
            return Fault(FaultKind.TIMEOUT, f"The server did not answer within {timeout:g} s.")

    async def _attempt(self, target: Target, work: Work[T]) -> tuple[T | Fault, Connection | None]:
        """One try, with the connection that it was made on; None when there was none to be had."""
        connection = self._connection_to(target)
        opened = await connection.opened()
        if isinstance(opened, Fault):
            return opened, None
        try:
            with connection.in_use():
                return await work(opened), connection
        except MCPError as error:
            return opened.wire.peer.remote(error), connection
        except WireFault as error:
            if error.fault.kind is FaultKind.SESSION_LOST:
                self._lose(connection)
            return error.fault, connection

    def _connection_to(self, target: Target) -> Connection:
        """The connection of a target, begun now if there is none."""
        connection = self._current.get(target.key)
        if connection is not None:
            return connection
        _, refuted = self._losses.get(target.key, (0.0, None))
        if target.discovery == refuted:
            target = replace(target, discovery=None)
        connection = Connection(
            target, self._limits, self._claims(target), self._is_allowed, self._forget
        )
        self._current[target.key] = connection
        self._alive.add(connection)
        connection.owner.add_done_callback(lambda _: self._alive.discard(connection))
        self.retire(target.connector_id, target.generation)
        return connection

    def _forget(self, connection: Connection) -> None:
        if self._current.get(connection.target.key) is connection:
            del self._current[connection.target.key]

    def _lose(self, connection: Connection) -> None:
        """The server no longer knows a connection: the next call gets a new one (D1).

        Whoever noticed first counts; the others meet a connection that is not current any more.
        """
        key = connection.target.key
        if self._current.get(key) is not connection:
            return
        now = self._clock()
        lost_at, refuted = self._losses.get(key, (-math.inf, None))
        connection.is_lost_again = now - lost_at < self._limits.loss_window_seconds
        self._losses[key] = (now, connection.target.discovery or refuted)
        connection.stop()


def _is_repairable(fault: Fault, connection: Connection) -> bool:
    if fault.kind is FaultKind.SESSION_LOST:
        return not connection.is_lost_again
    return fault.kind is FaultKind.CLOSED and not connection.is_dropped


def _explained(fault: Fault, connection: Connection) -> Fault:
    if connection.is_lost_again:
        return replace(fault, message="The server lost the session again shortly after a new one.")
    return replace(
        fault,
        message="The server ended the session during the call. It was not made again, "
        "because the tool does not say that it may be.",
    )
