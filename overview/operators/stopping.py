"""The stop of a web process: announced first, done a while later.

A web server that is told to stop closes the connections that it keeps at once, and a proxy cannot
know whether the POST that it has just sent on one was taken, so it must not send it again. Hence
the process first says for a while that it stops, and serves on, until each proxy has noticed.
"""

from __future__ import annotations

import asyncio
import signal
import threading


class Stopping:
    """Whether this process was told to stop."""

    def __init__(self) -> None:
        self.has_begun = False

    def hold_back(self, seconds: float) -> None:
        """Have SIGTERM reach the web server so many seconds late; a second one reaches it at once.

        To be called on the event loop, once the server has its handler. Nothing is held back for 0
        seconds, outside of the main thread, and where nobody handles the signal.
        """
        stop = signal.getsignal(signal.SIGTERM)
        is_main = threading.current_thread() is threading.main_thread()
        if seconds <= 0 or not is_main or not callable(stop):
            return
        loop = asyncio.get_running_loop()

        def told() -> None:
            if self.has_begun:
                stop(signal.SIGTERM, None)
            else:
                self.has_begun = True
                loop.call_later(seconds, stop, signal.SIGTERM, None)

        # Not signal.signal, whose handlers must not touch the loop.
        loop.add_signal_handler(signal.SIGTERM, told)
