"""Django's handler, whose requests take turns in a few threads that stay."""

from __future__ import annotations

import asyncio
import contextvars
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from asgiref.sync import ThreadSensitiveContext
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.base import BaseHandler
from django.db import close_old_connections
from django.http import HttpRequest
from django.http.response import HttpResponseBase


class TurnsHandler(ASGIHandler):
    """Works on so many requests at once; the others wait for their turn, in order.

    Django gives each request a thread of its own. When every open page asks at the same moment,
    hundreds of threads fight for one interpreter and a handful of connections to the database, and
    all of them miss their deadlines. Waiting here costs nothing, and neither does who leaves
    meanwhile. Only the work takes a turn: no slow upload or slow reader holds one, nor a
    connection. There are more turns than connections, for a view that waits for a server holds
    none meanwhile. The whole chain is called plainly, middleware and view in one thread, because
    nothing in it awaits.
    """

    def __init__(self, at_once: int) -> None:
        BaseHandler.__init__(self)
        self.load_middleware(is_async=False)
        self._threads = ThreadPoolExecutor(at_once, "turn")
        self._signals = ThreadPoolExecutor(1, "signals")

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        # Else Django's signals take a thread for each request, which stays while it waits.
        async with ThreadSensitiveContext(executor=self._signals):
            await super().__call__(scope, receive, send)

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        loop, context = asyncio.get_running_loop(), contextvars.copy_context()
        return await loop.run_in_executor(self._threads, context.run, self._answer, request)

    def _answer(self, request: HttpRequest) -> HttpResponseBase:
        # Connections belong to threads, and Django looks only after those of its own.
        close_old_connections()
        try:
            return self.get_response(request)
        finally:
            close_old_connections()
