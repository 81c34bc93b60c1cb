"""The Celery app. Its beat schedule is CELERY_BEAT_SCHEDULE in the settings.

The threads pool enforces no time limits, so every task carries its own deadline.
"""

from __future__ import annotations

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "overview.settings")

app = Celery("overview")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
