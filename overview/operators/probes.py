"""`/healthz`, `/readyz` and `/metrics`, for the machines that look after this one.

An ASGI application before Django's: a probe knows no host name, no session and no https, and is
not worth a line in the log. Nothing in the answers depends on who asks.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

from django.conf import settings

from overview.operators import metrics
from overview.operators.health import Health, in_thread
from overview.operators.stopping import Stopping

Scope = dict[str, Any]
Send = Callable[[Any], Awaitable[None]]
Answer = tuple[int, str, bytes]

JSON, TEXT = "application/json", "text/plain; charset=utf-8"


class Probes:
    """The four addresses."""

    def __init__(self, stopping: Stopping) -> None:
        self._health, self._stopping = Health(), stopping
        self._answers = {
            "/healthz": self._alive,
            "/readyz": self._ready,
            "/readyz/process": self._process_ready,
            "/metrics": self._metrics,
        }

    def serves(self, scope: Scope) -> bool:
        return scope["type"] == "http" and scope["path"] in self._answers

    async def __call__(self, scope: Scope, receive: Any, send: Send) -> None:
        status, kind, body = 405, TEXT, b"Only GET.\n"
        if scope["method"] in ("GET", "HEAD"):
            status, kind, body = await self._answers[scope["path"]](scope)
        headers = [
            (b"content-type", kind.encode()),
            (b"content-length", str(len(body)).encode()),
            (b"cache-control", b"no-store"),
            (b"x-content-type-options", b"nosniff"),
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        body = b"" if scope["method"] == "HEAD" else body
        await send({"type": "http.response.body", "body": body})

    async def _alive(self, scope: Scope) -> Answer:
        return 200, TEXT, b"alive\n"

    async def _ready(self, scope: Scope) -> Answer:
        if self._stopping.has_begun:
            said = {"status": "stopping", "failed": ["process"], "parts": {"process": "stopping"}}
            return 503, JSON, json.dumps(said).encode() + b"\n"
        parts = await self._health.parts()
        failed = [name for name, answers in parts.items() if not answers]
        words = {name: "ok" if answers else "failed" for name, answers in parts.items()}
        body = {"status": "failed" if failed else "ok", "failed": failed, "parts": words}
        return 503 if failed else 200, JSON, json.dumps(body).encode() + b"\n"

    async def _process_ready(self, scope: Scope) -> Answer:
        """For proxies: a part of the host that is away takes no web process out of their turns."""
        return (503, TEXT, b"stopping\n") if self._stopping.has_begun else (200, TEXT, b"ready\n")

    async def _metrics(self, scope: Scope) -> Answer:
        if not settings.METRICS_TOKEN:
            return 404, TEXT, b"Metrics are off: set METRICS_TOKEN.\n"
        if not secrets.compare_digest(
            _credential(scope), f"Bearer {settings.METRICS_TOKEN}".encode()
        ):
            return 401, TEXT, b"Wrong token.\n"
        return 200, metrics.CONTENT_TYPE, await in_thread(metrics.exposition)()


def _credential(scope: Scope) -> bytes:
    return next((value for name, value in scope["headers"] if name == b"authorization"), b"")
