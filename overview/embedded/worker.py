"""A Celery worker and beat in threads of this process, started and stopped by the web server."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

from celery import Celery
from celery.beat import EmbeddedService
from celery.platforms import EX_OK
from celery.worker import WorkController, state

from overview.embedded import wake

logger = logging.getLogger(__name__)


class _Worker(WorkController):
    def __init__(self, **kwargs: Any) -> None:
        self.ready = threading.Event()
        super().__init__(**kwargs)

    def on_consumer_ready(self, consumer: Any) -> None:
        self.ready.set()


class EmbeddedCelery:
    """One worker with the threads pool, and beat. Only one per process: Celery's flags are global.

    Beat is a thread of its own: `worker --beat` would fork, and a fork shares no memory broker.
    """

    def __init__(self, app: Celery) -> None:
        self._app = app
        self._thread: threading.Thread | None = None
        self._beat: Any = None

    def start(self, timeout_seconds: float = 15) -> None:
        """Raises: RuntimeError when the worker is not consuming within the timeout."""
        state.should_stop = state.should_terminate = None
        wake.Transport.is_stopping = False
        self._app.set_default()
        worker = _Worker(
            app=self._app,
            pool="threads",
            hostname="embedded@localhost",
            use_eventloop=False,
            without_heartbeat=True,
            without_mingle=True,
            without_gossip=True,
        )
        self._thread = threading.Thread(target=worker.start, name="celery-worker", daemon=True)
        self._thread.start()
        deadline = time.monotonic() + timeout_seconds
        while not worker.ready.wait(0.05):
            if not self._thread.is_alive() or time.monotonic() > deadline:
                raise RuntimeError("The embedded Celery worker did not start.")
        # The plain scheduler keeps no file; the default one would write into the working folder.
        self._beat = EmbeddedService(self._app, thread=True, scheduler_cls="celery.beat:Scheduler")
        self._beat.start()

    def stop(self, timeout_seconds: float = 1.5) -> bool:
        """End after the tasks under way; False when one of them did not end in time."""
        if self._beat is not None:
            self._beat.service.stop(wait=False)
        state.should_stop = EX_OK  # type: ignore[assignment]
        wake.Transport.is_stopping = True
        wake.bell.ring()
        if self._thread is None:
            return True
        self._thread.join(timeout_seconds)
        if self._beat is not None:
            self._beat.join(1)
        return not self._thread.is_alive()
