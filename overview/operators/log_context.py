"""Which request and which task a log line belongs to, and how long tasks waited.

A task carries the id of the request that queued it, so that the lines of both can be found by one
number: the one that an error page shows and every answer has as `X-Request-ID`.
"""

from __future__ import annotations

import time
from typing import Any

from celery.signals import before_task_publish, task_postrun, task_prerun
from django.http import HttpRequest, HttpResponse
from django_structlog import signals
from structlog.contextvars import bind_contextvars, get_contextvars, unbind_contextvars

from workspaces import tallies

_OF_A_TASK = ("task", "task_id")


def connect() -> None:
    """Listen. Called once, when Django is set up: by web processes, workers and beat alike."""
    before_task_publish.connect(_note_sending, weak=False)
    task_prerun.connect(_begin, weak=False)
    task_postrun.connect(_end, weak=False)
    signals.bind_extra_request_metadata.connect(_note_address, weak=False)
    signals.bind_extra_request_finished_metadata.connect(_number, weak=False)
    signals.update_failure_response.connect(_number, weak=False)


def _note_address(request: HttpRequest, **_: Any) -> None:
    # Behind a proxy, the web server has put there whom the proxy names, if it may name anybody.
    bind_contextvars(ip=request.META.get("REMOTE_ADDR"))


def _number(response: HttpResponse, **_: Any) -> None:
    if request_id := get_contextvars().get("request_id"):
        response["X-Request-ID"] = request_id


def _note_sending(headers: dict[str, Any], **_: Any) -> None:
    headers["sent_at"] = time.time()
    if request_id := get_contextvars().get("request_id"):
        headers["request_id"] = request_id


def _begin(task_id: str, task: Any, **_: Any) -> None:
    bind_contextvars(task=task.name, task_id=task_id)
    request_id, sent_at = task.request.get("request_id"), task.request.get("sent_at")
    if request_id and "request_id" not in get_contextvars():
        bind_contextvars(request_id=request_id)
    if sent_at:
        tallies.observe("queue_delay_seconds", max(0.0, time.time() - sent_at))


def _end(task: Any, state: str | None = None, **_: Any) -> None:
    is_sent = task.request.get("sent_at") is not None
    unbind_contextvars(*_OF_A_TASK, *(["request_id"] if is_sent else []))
    tallies.count("tasks", "done" if state == "SUCCESS" else "failed")
    tallies.flush()
