"""The Celery app. Its beat schedule is CELERY_BEAT_SCHEDULE in the settings.

The threads pool enforces no time limits, so every task carries its own deadline.
"""

from __future__ import annotations

import os
from typing import Any

from celery import Celery
from celery.signals import worker_ready, worker_shutdown
from kombu.transport import TRANSPORT_ALIASES

from overview.garbage import settle_collector

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "overview.settings")

# The embedded default's own broker; loaded only where its name is used.
TRANSPORT_ALIASES["wake"] = "overview.embedded.wake:Transport"

app = Celery("overview")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_ready.connect
def _settle(**_: Any) -> None:
    settle_collector()


@worker_shutdown.connect
def _close_connections(**_: Any) -> None:
    """After the last task of a worker: its servers hear that it goes."""
    from connectors.runtime import close_runtime

    close_runtime()
