"""A small CONNECT proxy over bare sockets, which can refuse, lie and hang.

with connect_proxy() as proxy:
    ... proxy.url ...
    assert proxy.asked == ["127.0.0.1:8000"]
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

from workspaces.background import BackgroundLoop


class ConnectProxy:
    """answer: what it says instead of connecting; b"" says nothing and waits. asked: the places,
    in order. heads: all that it was told before a tunnel stood. through: what went through."""

    def __init__(self) -> None:
        self.answer: bytes | None = None
        self.greeting = b"HTTP/1.1 200 Connection established\r\n\r\n"
        self.asked: list[str] = []
        self.heads: list[str] = []
        self.through = b""
        self.port = 0
        self._writers: list[asyncio.StreamWriter] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.heads.append(head)
            verb, place, _ = head.split(" ", 2)
            self.asked.append(place)
            if self.answer is not None:
                await self._lie(writer)
                return
            assert verb == "CONNECT"
            # Always to this machine, whatever address of it was asked for.
            there = await asyncio.open_connection("127.0.0.1", int(place.rpartition(":")[2]))
            self._writers.append(there[1])
            writer.write(self.greeting)
            await asyncio.gather(self._copy(reader, there[1]), self._copy(there[0], writer))

    async def _lie(self, writer: asyncio.StreamWriter) -> None:
        assert self.answer is not None
        if not self.answer:
            await asyncio.Event().wait()
        writer.write(self.answer)
        writer.close()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            self.through += data
            writer.write(data)
        writer.close()

    def hang_up(self) -> None:
        for writer in self._writers:
            writer.close()


@contextlib.contextmanager
def connect_proxy() -> Iterator[ConnectProxy]:
    """A proxy on a free port of the loopback interface, until the block ends."""
    proxy, loop = ConnectProxy(), BackgroundLoop("connect-proxy")

    async def start() -> asyncio.Server:
        return await asyncio.start_server(proxy.accept, "127.0.0.1", 0)

    async def stop() -> None:
        listening.close()
        proxy.hang_up()

    listening = loop.run(start(), 5)
    proxy.port = listening.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        loop.run(stop(), 5)
        loop.close()
