"""The Celery app. Its beat schedule is CELERY_BEAT_SCHEDULE in the settings.

The threads pool enforces no time limits, so every task carries its own deadline.
"""

from __future__ import annotations

import os

from celery import Celery
from kombu.transport import TRANSPORT_ALIASES

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "overview.settings")

# The embedded default's own broker; loaded only where its name is used.
TRANSPORT_ALIASES["wake"] = "overview.embedded.wake:Transport"

app = Celery("overview")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
