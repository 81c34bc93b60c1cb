"""One connection: its owner task connects, publishes it, waits, and closes it.

Callers run in tasks of their own and may come and go; the owner alone enters and leaves the SDK's
session, whose scopes must be left by the task that entered them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any

from mcp.client.session import ClientSession
from mcp.shared.dispatcher import CallOptions, ProgressFnT
from mcp_types import CLIENT_CAPABILITIES_META_KEY, Implementation

from connectors.sessions.faults import Peer, WireFault, fault
from connectors.sessions.guard import IsAllowed
from connectors.sessions.handshake import negotiate
from connectors.sessions.http_wire import HttpWire
from connectors.sessions.jsonrpc import Answer
from connectors.sessions.outward import outward
from connectors.sessions.stdio_wire import StdioWire
from connectors.sessions.values import Connected, Fault, FaultKind, Limits, Target
from connectors.sessions.wire import OnNotification, Wire
from workspaces import spans

logger = logging.getLogger(__name__)

CLIENT_INFO = Implementation(name="workspace-overview", version="1")
"""The host, the same to every server: no workspace and no member can be told from it."""


@dataclass(slots=True)
class Opened:
    """A connection that is ready to be used."""

    session: ClientSession
    wire: Wire
    connected: Connected

    @property
    def is_modern(self) -> bool:
        return self.session.discover_result is not None

    async def ask(
        self,
        method: str,
        params: dict[str, Any],
        *,
        client_capabilities: dict[str, Any] | None = None,
        on_progress: ProgressFnT | None = None,
        on_notification: OnNotification | None = None,
    ) -> Answer:
        """One request with the envelope of its era, its result raw.

        client_capabilities: claimed for this request instead of the connection's own; a 2025
        server heard them once and for all at the handshake.
        Raises: MCPError, WireFault.
        """
        message: dict[str, Any] = {"method": method, "params": params}
        options: CallOptions = {}
        try:
            self.session._stamp(message, options)
        except ValueError:
            raise fault(FaultKind.PROTOCOL, "The request holds what HTTP cannot carry.") from None
        if client_capabilities is not None and self.is_modern:
            message["params"]["_meta"][CLIENT_CAPABILITIES_META_KEY] = client_capabilities
        if outward().tells_trace and (context := spans.carried()):
            # Source: SEP-414. As headers too, for what stands in front of the server.
            params = message["params"]
            message["params"] = {**params, "_meta": {**params.get("_meta", {}), **context}}
            options["headers"] = {**options.get("headers", {}), **context}
        if on_progress is not None:
            options["on_progress"] = on_progress
        return await self.wire.request(method, message["params"], options, on_notification)


class Connection:
    """A connection from its first caller to its end."""

    def __init__(
        self,
        target: Target,
        limits: Limits,
        claims: dict[str, dict[str, Any]],
        is_allowed: IsAllowed,
        on_end: Callable[[Connection], None],
    ) -> None:
        self.target = target
        self.is_dropped = False
        """Closed on purpose: a call that was under way must not open it again."""
        self.is_lost_again = False
        """Its session was lost soon after another one, which is reported instead of repaired."""
        self._limits, self._claims, self._is_allowed = limits, claims, is_allowed
        self._on_end = on_end
        self._users = 0
        self._is_retired = False
        self._last_used_at = 0.0
        self._stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        self._opened: asyncio.Future[Opened | Fault] = loop.create_future()
        self.owner = loop.create_task(self._own(), name=f"connector-{target.connector_id}")

    async def opened(self) -> Opened | Fault:
        """The connection when it is ready, or why it failed: the same for all who wait."""
        return await asyncio.shield(self._opened)

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1
            self._last_used_at = asyncio.get_running_loop().time()
            if self._is_retired and not self._users:
                self.stop()

    def retire(self) -> None:
        """Close it as soon as nobody uses it: a newer credential took its place."""
        self._is_retired = True
        if not self._users:
            self.stop()

    def stop(self) -> None:
        """Close it now: nobody gets it any more, and calls that are under way fail."""
        self._on_end(self)
        self._stop.set()
        if not self._opened.done():
            self.owner.cancel()

    async def _own(self) -> None:
        ending = Fault(FaultKind.CLOSED, "The connection was closed.")
        try:
            async with (
                self._wire() as wire,
                ClientSession(
                    dispatcher=wire, client_info=CLIENT_INFO, extensions=self._claims or None
                ) as session,
            ):
                outcome = await self._handshake(session, wire)
                if isinstance(outcome, Opened):
                    self._opened.set_result(outcome)
                    await self._until_unused()
                else:
                    ending = outcome
                # Before the farewell, which takes its time.
                self._end(ending)
        except WireFault as error:
            ending = error.fault
        except Exception:
            logger.exception("A connection failed in a way that nobody foresaw")
            ending = Fault(FaultKind.PROTOCOL, "The connection failed; the log says why.")
        finally:
            self._end(ending)

    def _end(self, ending: Fault) -> None:
        self._on_end(self)
        if not self._opened.done():
            self._opened.set_result(ending)

    @contextlib.asynccontextmanager
    async def _wire(self) -> AsyncIterator[Wire]:
        peer = Peer(self.target)
        wire: HttpWire | StdioWire
        if self.target.command is None:
            wire = HttpWire(self.target, self._limits, peer, self._is_allowed)
        else:
            wire = await StdioWire.start(self.target, self._limits, peer, on_death=self.stop)
        try:
            yield wire
        finally:
            await wire.aclose()

    async def _handshake(self, session: ClientSession, wire: Wire) -> Opened | Fault:
        try:
            async with asyncio.timeout(self._limits.connect_seconds):
                connected = await negotiate(session, wire, self.target)
        except TimeoutError:
            seconds = f"{self._limits.connect_seconds:g}"
            return Fault(FaultKind.TIMEOUT, f"The server did not answer within {seconds} s.")
        except WireFault as error:
            return error.fault
        return Opened(session, wire, connected)

    async def _until_unused(self) -> None:
        """Wait until it is stopped, or was idle for its time."""
        loop = asyncio.get_running_loop()
        self._last_used_at = max(self._last_used_at, loop.time())
        while not self._stop.is_set():
            idle = 0.0 if self._users else loop.time() - self._last_used_at
            if idle >= self._limits.idle_seconds:
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._limits.idle_seconds - idle):
                    await self._stop.wait()
