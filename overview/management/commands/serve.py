"""One command, no other service: migrations, the site, a Celery worker and its beat."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import socket
import sys
import threading
from pathlib import Path
from typing import IO, Any

import uvicorn
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser

from overview.celery import app as celery_app
from overview.demo import ADMIN, MEMBER, Demo
from overview.embedded.worker import EmbeddedCelery
from overview.tasks import host_started
from workspaces.models import Workspace


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
        # Both before anything is changed: a second start must leave the one that runs alone.
        lock = _only_one(settings.VAR_DIR)
        listening = _listen(host, port)
        call_command("migrate", interactive=False, verbosity=0)
        demo = Demo(settings.VAR_DIR) if settings.DEMO else None
        worker = EmbeddedCelery(celery_app)
        server = uvicorn.Server(
            uvicorn.Config(
                _with_lifespan(worker, demo),
                lifespan="on",
                log_config=None,
                access_log=False,
                timeout_graceful_shutdown=2,
                ws_ping_interval=20,
                # Pages say nothing and hear a line: see OverviewConsumer.
                ws_max_size=4096,
                ws_per_message_deflate=False,
                proxy_headers=settings.TRUST_PROXY_HEADERS,
                server_header=False,
            )
        )
        threading.Thread(
            target=self._greet, args=(server, demo, host, port), name="greeting", daemon=True
        ).start()
        # uvicorn raises Ctrl-C once more when it has shut down, and exits when it cannot start.
        with contextlib.suppress(KeyboardInterrupt, SystemExit):
            server.run(sockets=[listening])
        lock.close()
        if not server.started:
            raise CommandError(f"The site could not start on {host}:{port}.")
        # A task that did not end would keep the interpreter alive; its lease expires by itself.
        self.stdout.flush()
        os._exit(0)

    def _greet(self, server: uvicorn.Server, demo: Demo | None, host: str, port: int) -> None:
        while not server.started:
            if server.should_exit:
                return
            threading.Event().wait(0.05)
        shown = f"[{host}]" if ":" in host else host
        origin = f"http://{shown}:{port}"
        manage = f"{_python()} manage.py"
        path = "/"
        if demo is not None:
            for line in demo.notes:
                self.stdout.write(line)
            path = demo.sign_in_path()
        self.stdout.write(f"Open {origin}{path}")
        if demo is not None:
            self.stdout.write(
                f"It signs {ADMIN} in, once. Another link, for her or for {MEMBER}:\n"
                f"  {manage} sign-in-link {MEMBER} --origin {origin}"
            )
        elif not Workspace.objects.exists():
            self.stdout.write(
                "There is no workspace yet. To make one, and a link that signs you in:\n"
                f"  {manage} workspace create acme --name Acme --admin you@example.com\n"
                f"  {manage} sign-in-link you@example.com --origin {origin}"
            )
        self.stdout.write(
            "Ctrl-C stops it. Another port: make run PORT=8123. Without the demo: DEMO=0 make run."
        )
        self.stdout.flush()


def _only_one(directory: Path) -> IO[str]:
    """Hold the folder for this process; the kernel lets go of it however the process ends."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = (directory / "serve.lock").open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise CommandError(
            f"The site runs already, with what is kept in {directory}/. Stop that one first, or "
            "set VAR_DIR to another folder."
        ) from None
    return lock


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        why = error.strerror if isinstance(error, OSError) else "a port is 0 to 65535"
        raise CommandError(
            f"The site cannot listen on {host}:{port}: {why}. Another port: make run PORT=8123."
        ) from None


def _python() -> str:
    """This Python, as somebody in the project's folder types it."""
    shown = os.path.relpath(sys.executable)
    return sys.executable if shown.startswith("..") else shown


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
