"""A server as a child process: one JSON-RPC message a line on its standard input and output.

Source: MCP 2025-11-25 and 2026-07-28, "Transports", "stdio".
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Mapping
from typing import Any

from mcp.client.stdio import get_default_environment
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError

from connectors.sessions.faults import Peer, WireFault, fault
from connectors.sessions.jsonrpc import Answer, encode
from connectors.sessions.values import FaultKind, Limits, Target
from connectors.sessions.wire import (
    HANDSHAKE,
    Exchange,
    OnNotification,
    Wire,
    id_of,
    messages_of,
    result_of,
)

_Waiter = tuple[Exchange, asyncio.Future[Answer]]


class StdioWire(Wire):
    """Requests to one child process."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        limits: Limits,
        peer: Peer,
        on_death: Callable[[], None],
    ) -> None:
        super().__init__(limits, peer)
        self._process = process
        self._on_death = on_death
        self._is_dead = False
        self._waiters: dict[object, _Waiter] = {}
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def start(
        cls, target: Target, limits: Limits, peer: Peer, *, on_death: Callable[[], None]
    ) -> StdioWire:
        """Start the child, with nothing of our environment that it does not need.

        on_death: called once, as soon as nothing more can come from it.
        Raises: WireFault when there is no such program.
        """
        if not target.command:
            raise fault(FaultKind.UNREACHABLE, "The operator's list has no such program.")
        try:
            process = await asyncio.create_subprocess_exec(
                *target.command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env={**get_default_environment(), **dict(target.environment)},
                limit=limits.max_body_bytes,
                start_new_session=True,
            )
        except (OSError, ValueError):
            raise fault(FaultKind.UNREACHABLE, "The server's program cannot be started.") from None
        return cls(process, limits, peer, on_death)

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        opts: CallOptions,
        on_notification: OnNotification | None = None,
    ) -> Answer:
        exchange, message = self.exchange(method, params, opts, on_notification)
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiters[exchange.id] = (exchange, future)
        try:
            await self._write(message)
            return await future
        except asyncio.CancelledError:
            if method not in HANDSHAKE:
                with contextlib.suppress(WireFault):
                    self._write_soon(_cancelled(exchange))
            raise
        finally:
            del self._waiters[exchange.id]

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params:
            message["params"] = params
        await self.reply(message)

    async def reply(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(WireFault):
            await self._write(message)

    async def aclose(self) -> None:
        """End the child: its input closes, then it is asked, then it is killed."""
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)
        self._pipe().close()
        try:
            for number in (signal.SIGTERM, signal.SIGKILL):
                if await self._has_ended():
                    return
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._process.pid, number)
            await self._has_ended()
        finally:
            # Pipes that a grandchild holds, or that nobody reads to their end, stay open else.
            self._process._transport.close()  # type: ignore[attr-defined]

    async def _has_ended(self) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.limits.close_seconds):
                await self._process.wait()
        return self._process.returncode is not None

    async def _write(self, message: dict[str, Any]) -> None:
        self._write_soon(message)
        try:
            await self._pipe().drain()
        except (ConnectionError, RuntimeError):
            raise _gone() from None

    def _write_soon(self, message: dict[str, Any]) -> None:
        if self._is_dead:
            raise _gone()
        try:
            self._pipe().write(encode(message) + b"\n")
        except ValueError:
            raise fault(FaultKind.PROTOCOL, "The request holds what JSON cannot carry.") from None

    def _pipe(self) -> asyncio.StreamWriter:
        assert self._process.stdin is not None
        return self._process.stdin

    async def _read(self) -> None:
        """Take the child's lines until it dies; then nobody waits for it any longer."""
        assert self._process.stdout is not None
        try:
            while line := await self._process.stdout.readline():
                if line.strip():
                    await self._accept(line)
        except ValueError:
            pass  # A line beyond the limit: where the next one starts is unknown.
        finally:
            self._is_dead = True
            self._on_death()
            for _, future in self._waiters.values():
                if not future.done():
                    future.set_exception(_gone())

    async def _accept(self, line: bytes) -> None:
        try:
            messages, body = messages_of(line)
        except WireFault:
            return  # Programs print all sorts of things. A lost answer ends at its deadline.
        for message in messages:
            if "method" in message:
                await self._distribute(message)
                continue
            _, future = self._waiters.get(id_of(message.get("id")), (None, None))
            if future is None or future.done():
                continue
            try:
                future.set_result(Answer(result_of(message), body.is_suspect, len(line)))
            except (MCPError, WireFault) as error:
                future.set_exception(error)

    async def _distribute(self, message: dict[str, Any]) -> None:
        exchanges = [exchange for exchange, _ in self._waiters.values()]
        if "id" in message:
            await self.take(message, None)
            return
        for exchange in exchanges:
            await self.take(message, exchange)


def _cancelled(exchange: Exchange) -> dict[str, Any]:
    params = {"requestId": exchange.id}
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}


def _gone() -> WireFault:
    return fault(FaultKind.CLOSED, "The server's process has ended.")
