"""Sockets as the HTTP library uses them, at less cost for each request."""

from __future__ import annotations

import contextlib
import select
import ssl
from typing import Any, Final

import httpcore2

MAX_HELD_BYTES: Final = 64 * 1024
"""What is held back of a request; a larger body is sent as it comes."""


class Stream(httpcore2.AsyncNetworkStream):
    """A stream that sends the head of a request and its body at once, when the answer is read.

    The library asks each idle connection before each request whether its server hung up.
    """

    def __init__(self, stream: httpcore2.AsyncNetworkStream) -> None:
        self._stream = stream
        self._held = bytearray()
        self._socket = stream.get_extra_info("socket")
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        # As where the library sends: a server may refuse what it did not read to its end.
        with contextlib.suppress(httpcore2.WriteError):
            await self._send(timeout)
        return await self._stream.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._held += buffer
        if len(self._held) >= MAX_HELD_BYTES:
            await self._send(timeout)

    async def _send(self, timeout: float | None) -> None:
        if self._held:
            held, self._held = self._held, bytearray()
            await self._stream.write(bytes(held), timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        return Stream(await self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        if info != "is_readable":
            return self._stream.get_extra_info(info)
        return self._socket.fileno() < 0 or bool(self._poll.poll(0))
