"""Pages that wait for a server while somebody looks at a spinner."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

RETRY_SECONDS = 10

_slots = threading.BoundedSemaphore(max(1, settings.WEB_THREADS // 2))
"""Half of a web process's turns wait for slow servers at most; the others serve pages meanwhile."""


def waits_for_server(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Around a view that waits for a server when something is posted to it: 503 without a slot."""

    @functools.wraps(view)
    def waiting(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        if request.method != "POST":
            return view(request, *args, **kwargs)
        if not _slots.acquire(blocking=False):
            response = render(request, "connectors/busy.html", status=503)
            response["Retry-After"] = str(RETRY_SECONDS)
            return response
        try:
            return view(request, *args, **kwargs)
        finally:
            _slots.release()

    return waiting
