"""One event loop in a thread of its own, for a process whose other threads are synchronous.

Connections to servers live as long as the process, so their loop must too: a loop per task or per
request (`async_to_sync`) would take them down with it. The loop is made when first used, so that
a process that forks its workers gives each of them its own. In a web process it is the server's.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import sys
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

GRACE_SECONDS = 5
"""How much longer than its deadline a thread waits for a loop that somebody blocks."""


class BackgroundLoop:
    """An event loop that runs in a daemon thread until it is closed.

    running: the loop that this thread runs, to be used instead; whoever runs it ends it.
    """

    def __init__(
        self, name: str = "background-loop", running: asyncio.AbstractEventLoop | None = None
    ) -> None:
        self.is_borrowed = running is not None
        if running is not None:
            self._loop, self._thread = running, threading.current_thread()
            return
        self._loop = _new_event_loop()
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._thread.start()

    def _main(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        # Here: Redis' channel layer runs a loop once more when it is closed, and whoever ends this
        # one may run another.
        self._loop.close()

    def submit(self, coro: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Start a coroutine on the loop, from any thread or loop."""
        return asyncio.run_coroutine_threadsafe(coro, self._loop)

    async def result_of(self, coro: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop and wait for it, from any event loop; at once from its own.

        Whoever is cancelled meanwhile cancels it.
        """
        if asyncio.get_running_loop() is self._loop:
            return await coro
        return await asyncio.wrap_future(self.submit(coro))

    def run(self, coro: Coroutine[Any, Any, T], timeout_seconds: float) -> T:
        """Run a coroutine on the loop and wait for it in this thread.

        The deadline is kept inside the loop: the coroutine is cancelled there, so that a thread
        that gives up leaves no work behind.
        Raises: TimeoutError when it takes longer.
        """
        if threading.current_thread() is self._thread:
            coro.close()
            raise RuntimeError("The background loop cannot wait for itself.")

        async def bounded() -> T:
            async with asyncio.timeout(timeout_seconds):
                return await coro

        future = self.submit(bounded())
        try:
            return future.result(timeout_seconds + GRACE_SECONDS)
        except concurrent.futures.TimeoutError:
            future.cancel()
            raise

    def close(self, timeout_seconds: float = 5) -> None:
        """Cancel what still runs, and end the thread."""
        if self.is_borrowed or self._loop.is_closed():
            return
        with contextlib.suppress(concurrent.futures.TimeoutError):
            self.submit(_cancel_everything()).result(timeout_seconds)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout_seconds)


async def _cancel_everything() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    loop = asyncio.get_running_loop()
    await loop.shutdown_asyncgens()
    await loop.shutdown_default_executor()


def _new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop where it exists: the same reads cost a fifth less CPU on it."""
    if sys.platform == "win32":
        return asyncio.new_event_loop()
    import uvloop

    return uvloop.new_event_loop()


_lock = threading.Lock()
_current: tuple[int, BackgroundLoop] | None = None


def background() -> BackgroundLoop:
    """The loop of this process, made when first used (and anew in a forked child)."""
    global _current
    with _lock:
        if _current is None or _current[0] != os.getpid():
            _current = (os.getpid(), BackgroundLoop())
        return _current[1]


def run_background_on(running: asyncio.AbstractEventLoop | None) -> None:
    """Have the loop of a web server, called on it, be the loop of this process; None: not any more.

    Two loops in two threads would fight for the interpreter, several times in each tool call.
    A loop that was made before is closed, unless it is that of another server.
    """
    global _current
    closing = None
    with _lock:
        is_borrowed = _current is not None and _current[1].is_borrowed
        if running is None:
            _current = None if is_borrowed else _current
        elif not is_borrowed:
            closing, _current = _current, (os.getpid(), BackgroundLoop(running=running))
    _close(closing)


def close_background() -> None:
    """End the loop of this process; a later `background()` makes a new one."""
    global _current
    with _lock:
        closing, _current = _current, None
    _close(closing)


def _close(closing: tuple[int, BackgroundLoop] | None) -> None:
    if closing is not None and closing[0] == os.getpid():
        closing[1].close()
