"""What is sent of a request when, and what an idle connection tells."""

from __future__ import annotations

import asyncio
import contextlib
import socket

import httpcore2
import uvloop

from connectors.sessions.sockets import MAX_HELD_BYTES, Stream

SECONDS = 5
RUNNERS = (asyncio.Runner, lambda: asyncio.Runner(loop_factory=uvloop.new_event_loop))


@contextlib.asynccontextmanager
async def connected():
    """A stream, and the socket at its other end."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        backend = httpcore2.AnyIOBackend()
        host, port = listener.getsockname()
        stream = Stream(await backend.connect_tcp(host, port, timeout=SECONDS))
        there, _ = await asyncio.get_running_loop().sock_accept(listener)
        with there:
            there.setblocking(False)
            yield stream, there
        await stream.aclose()


def on_both_loops(work):
    for runner in RUNNERS:
        with runner() as running:
            running.run(asyncio.wait_for(work(), 2 * SECONDS))


def test_the_head_and_the_body_of_a_request_leave_together():
    async def work():
        loop = asyncio.get_running_loop()
        async with connected() as (stream, there):
            await stream.write(b"head ", SECONDS)
            await stream.write(b"body", SECONDS)
            reading = asyncio.create_task(stream.read(100, SECONDS))
            assert await loop.sock_recv(there, 100) == b"head body"
            await loop.sock_sendall(there, b"answer")
            assert await reading == b"answer"

    on_both_loops(work)


def test_a_large_body_is_not_held_back():
    async def work():
        loop = asyncio.get_running_loop()
        async with connected() as (stream, there):
            await stream.write(b"x" * MAX_HELD_BYTES, SECONDS)
            assert await loop.sock_recv(there, 100) == b"x" * 100

    on_both_loops(work)


def test_an_answer_that_came_before_the_request_was_sent_is_read():
    async def work():
        loop = asyncio.get_running_loop()
        async with connected() as (stream, there):
            await stream.write(b"head", SECONDS)
            await loop.sock_sendall(there, b"too large")
            there.shutdown(socket.SHUT_RDWR)
            assert await stream.read(100, SECONDS) == b"too large"

    on_both_loops(work)


def test_an_idle_connection_is_readable_only_when_its_server_hung_up():
    async def work():
        async with connected() as (stream, there):
            assert not stream.get_extra_info("is_readable")
            there.shutdown(socket.SHUT_WR)
            async with asyncio.timeout(SECONDS):
                while not stream.get_extra_info("is_readable"):
                    await asyncio.sleep(0)
            assert stream.get_extra_info("server_addr") is not None

    on_both_loops(work)
