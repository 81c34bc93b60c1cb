"""One command, no other service: migrations, the site, a Celery worker and its beat."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from typing import Any

import uvicorn
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser

from overview.celery import app as celery_app
from overview.demo import Demo
from overview.embedded.worker import EmbeddedCelery
from overview.tasks import host_started


class Command(BaseCommand):
    help = __doc__
    requires_system_checks = "__all__"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=8000)

    def handle(self, *, host: str, port: int, **options: Any) -> None:
        if settings.REDIS_URL:
            raise CommandError(
                "`serve` runs everything in one process. With REDIS_URL set, start "
                "`uvicorn overview.asgi:application`, `celery -A overview worker --pool threads` "
                "and `celery -A overview beat` instead."
            )
        call_command("migrate", interactive=False, verbosity=0)
        demo = Demo(settings.VAR_DIR) if settings.DEMO else None
        worker = EmbeddedCelery(celery_app)
        server = uvicorn.Server(
            uvicorn.Config(
                _with_lifespan(worker, demo),
                host=host,
                port=port,
                lifespan="on",
                log_config=None,
                access_log=False,
                timeout_graceful_shutdown=2,
                ws_ping_interval=20,
                # Pages say nothing: see OverviewConsumer.
                ws_max_size=4096,
                proxy_headers=settings.TRUST_PROXY_HEADERS,
                server_header=False,
            )
        )
        threading.Thread(
            target=self._greet, args=(server, demo, host, port), name="greeting", daemon=True
        ).start()
        # uvicorn raises Ctrl-C once more when it has shut down, and exits when it cannot listen.
        with contextlib.suppress(KeyboardInterrupt, SystemExit):
            server.run()
        if not server.started:
            raise CommandError(f"The site could not start on {host}:{port}. Is the port in use?")
        # A task that did not end would keep the interpreter alive; its lease expires by itself.
        self.stdout.flush()
        os._exit(0)

    def _greet(self, server: uvicorn.Server, demo: Demo | None, host: str, port: int) -> None:
        while not server.started:
            if server.should_exit:
                return
            threading.Event().wait(0.05)
        shown = f"[{host}]" if ":" in host else host
        path = "/"
        if demo is not None:
            for line in demo.notes:
                self.stdout.write(line)
            path = demo.sign_in_path()
        self.stdout.write(f"Open http://{shown}:{port}{path}")
        self.stdout.write(
            "Ctrl-C stops it. Another port: make run PORT=8123. Without the demo: DEMO=0 make run."
        )
        self.stdout.flush()


def _with_lifespan(worker: EmbeddedCelery, demo: Demo | None) -> Any:
    """The site, with the worker, the clock and the demo's servers living as long as it does."""
    from overview.asgi import application

    async def wrapped(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            return await application(scope, receive, send)

        async def sending(message: dict[str, Any]) -> None:
            if message["type"] == "lifespan.startup.complete":
                await asyncio.to_thread(_start)
            await send(message)

        async def receiving() -> Any:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                await asyncio.to_thread(_stop)
            return message

        await application(scope, receiving, sending)

    def _start() -> None:
        if demo is not None:
            demo.start()
        host_started()
        worker.start()

    def _stop() -> None:
        if demo is not None:
            demo.stop()
        worker.stop()

    return wrapped
