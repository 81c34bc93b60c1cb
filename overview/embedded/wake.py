"""kombu's in-memory transport, with a consumer that wakes at once instead of polling.

Measured beside `memory://` at its shortest useful poll (docs/decisions/embedded.md): a task starts
after 1 ms instead of 8 to 50, an idle worker costs 0.01 % of a core instead of 1.3, and stopping
takes no time instead of 4 s, which Ctrl-C within 5 s could not afford.
"""

from __future__ import annotations

import threading
from queue import Empty
from time import monotonic
from typing import Any

from kombu.transport import memory, virtual


class _Bell:
    """Counts rings, so that a ring between "the queue is empty" and "wait" is never lost."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._rings = 0

    def ring(self) -> None:
        with self._condition:
            self._rings += 1
            self._condition.notify_all()

    def rings(self) -> int:
        with self._condition:
            return self._rings

    def wait(self, seen: int, timeout: float | None) -> None:
        with self._condition:
            self._condition.wait_for(lambda: self._rings != seen, timeout)


bell = _Bell()


class Channel(memory.Channel):
    def _put(self, queue: str, message: Any, **kwargs: Any) -> None:
        super()._put(queue, message, **kwargs)
        bell.ring()

    def _put_fanout(self, *args: Any, **kwargs: Any) -> None:
        super()._put_fanout(*args, **kwargs)
        bell.ring()

    def basic_ack(self, delivery_tag: str, multiple: bool = False) -> None:
        super().basic_ack(delivery_tag, multiple)
        bell.ring()  # A prefetch slot is free again.

    def basic_reject(self, delivery_tag: str, requeue: bool = False) -> None:
        super().basic_reject(delivery_tag, requeue)
        bell.ring()


class Transport(memory.Transport):
    Channel = Channel
    global_state = virtual.BrokerState()
    # Set, then rung for: the worker looks at its own stop flag at once.
    is_stopping = False

    def drain_events(self, connection: Any, timeout: float | None = None, **kwargs: Any) -> Any:
        end = None if timeout is None else monotonic() + timeout
        while True:
            seen = bell.rings()
            try:
                assert self.cycle is not None
                return self.cycle.get(self._deliver, timeout=timeout)
            except Empty:
                left = None if end is None else end - monotonic()
                if Transport.is_stopping or (left is not None and left <= 0):
                    raise TimeoutError from None
                bell.wait(seen, left)
