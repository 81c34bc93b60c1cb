"""What all members of a workspace see alike, made once for those who ask at about the same moment.

A change is pushed to all open pages of a workspace, and each fetches the same panel; nothing in
here is one person's. Who may have it is decided before, for each request.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from django.conf import settings
from django.template.loader import render_to_string
from django.utils import timezone

from overview.queries import Overview, overview_of
from workspaces.models import Workspace

T = TypeVar("T")


class Shared(Generic[T]):
    """Values of a moment, by key. The first who asks makes one; who asks meanwhile waits for it."""

    def __init__(self, at_most: int) -> None:
        self._at_most = at_most
        self._lock = threading.Lock()
        self._entries: OrderedDict[object, _Entry[T]] = OrderedDict()

    def get(self, key: object, make: Callable[[], tuple[T, float]]) -> T:
        """The key's value: the one that is kept, else what `make` returns with the seconds to keep
        it.

        What `make` raises is raised to whoever called it; the next makes one anew.
        """
        entry = self._entry(key)
        with entry.making:
            if entry.ends_at is None:
                entry.value, seconds = make()
                entry.ends_at = time.monotonic() + seconds
            return entry.value

    def _entry(self, key: object) -> _Entry[T]:
        with self._lock:
            found = self._entries.get(key)
            if found is None or found.is_over():
                found = self._entries[key] = _Entry()
            self._entries.move_to_end(key)
            while len(self._entries) > self._at_most:
                self._entries.popitem(last=False)
            return found


class _Entry(Generic[T]):
    """ends_at: None until there is a value."""

    value: T

    def __init__(self) -> None:
        self.making = threading.Lock()
        self.ends_at: float | None = None

    def is_over(self) -> bool:
        return self.ends_at is not None and self.ends_at <= time.monotonic()


@dataclass(frozen=True, slots=True)
class Shown:
    """The panel, and the apps and connectors below it, as markup."""

    panel: str
    below: str


_shown: Shared[Shown] = Shared(at_most=256)


def shown_of(workspace: Workspace) -> Shown:
    """What the overview of a workspace shows.

    By version: what was made before a change is not shown to who was told of it. What time alone
    changes ends the sharing.
    """
    return _shown.get((workspace.pk, workspace.panel_version), lambda: _make(workspace))


def _make(workspace: Workspace) -> tuple[Shown, float]:
    now = timezone.now()
    page = overview_of(workspace, now)
    seconds: float = settings.PANEL_SHARED_SECONDS
    if page.panel.until is not None:
        seconds = min(seconds, (page.panel.until - now).total_seconds())
    return rendered(workspace, page), seconds


def rendered(workspace: Workspace, page: Overview) -> Shown:
    context = {
        "workspace": workspace,
        "apps": page.apps,
        "health": page.health,
        "connector_count": page.connector_count,
    }
    return Shown(
        panel=render_to_string("overview/_panel.html", {"panel": page.panel}),
        below=render_to_string("overview/_below.html", context) if page.connector_count else "",
    )
