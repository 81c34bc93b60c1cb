"""The panel's markup, shared by the members who ask for it at the same moment.

A change is pushed to all open pages of a workspace, and each fetches the same fragment: nothing in
it is one person's. Who may have it is decided before, for each request.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Shared(Generic[T]):
    """Values of a moment, by key. The first who asks makes one; who asks meanwhile waits for it."""

    def __init__(self, at_most: int) -> None:
        self._at_most = at_most
        self._lock = threading.Lock()
        self._entries: OrderedDict[object, _Entry[T]] = OrderedDict()

    def get(self, key: object, make: Callable[[], T], seconds: float) -> T:
        """The key's value, no older than so many seconds; 0 shares none.

        What `make` raises is raised to whoever called it; the next makes one anew.
        """
        if not seconds:
            return make()
        entry = self._entry(key, time.monotonic() - seconds)
        with entry.making:
            if entry.made_at is None:
                entry.value = make()
                entry.made_at = time.monotonic()
            return entry.value

    def _entry(self, key: object, made_since: float) -> _Entry[T]:
        with self._lock:
            found = self._entries.get(key)
            if found is None or found.is_older(made_since):
                found = self._entries[key] = _Entry()
            self._entries.move_to_end(key)
            while len(self._entries) > self._at_most:
                self._entries.popitem(last=False)
            return found


class _Entry(Generic[T]):
    """made_at: None until there is a value."""

    value: T

    def __init__(self) -> None:
        self.making = threading.Lock()
        self.made_at: float | None = None

    def is_older(self, then: float) -> bool:
        return self.made_at is not None and self.made_at < then
