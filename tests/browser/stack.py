"""The real stack for the browser: web server, Celery worker and beat as processes of their own, on
PostgreSQL and Valkey where the environment names them; else the embedded default, one process.

    with running_stack(directory) as stack:
        stack.manage("workspace", "create", "acme", "--name", "Acme", "--admin", "a@example.com")
        page.goto(stack.url + stack.sign_in_path("a@example.com"))
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg

from tests.hosts import ROOT, Host, free_port
from tests.services import valkey

START_SECONDS = 60
STOP_SECONDS = 10
# Times that a test can wait for. Nothing else differs from a real start.
QUICK = {
    "DEMO": "0",
    "FACET_FRESH_SECONDS": "0.2",
    "FACET_LISTING_SECONDS": "2",
    "CHECK_WATCHED_SECONDS": "5",
    "CONNECTOR_ALLOWED_NETWORKS": "127.0.0.0/8",
    "LOG_LEVEL": "WARNING",
    "LOG_FORMAT": "text",
}
SECRETS = {
    "SECRET_KEY": "only-for-the-tests-" * 4,
    "SECRETS_KEYS": "b25seS1mb3ItdGhlLXRlc3RzLW9ubHktZm9yLXRlc3Q=",
}


class Process:
    """Python with these words, and its log."""

    def __init__(
        self, log: Path, words: tuple[str, ...], environment: dict[str, str], **pipes: Any
    ) -> None:
        self._log = log
        with log.open("ab") as output:
            self._start = output.tell()
            self.process = subprocess.Popen(
                [sys.executable, *words],
                cwd=ROOT,
                env=environment,
                stderr=output,
                # In a session of its own a terminal's Ctrl-C reaches the tests alone.
                start_new_session=True,
                **{"stdout": output, **pipes},
            )

    def wait_for(self, text: str) -> None:
        """Wait until its log has this text."""
        deadline = time.monotonic() + START_SECONDS
        while text not in self.said():
            is_over = self.process.poll() is not None or time.monotonic() > deadline
            assert not is_over, self.said()
            time.sleep(0.02)

    def said(self) -> str:
        return self._log.read_bytes()[self._start :].decode(errors="replace")

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Commands(Process):
    """See tests/browser/commands.py."""

    def __init__(self, log: Path, environment: dict[str, str]) -> None:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        super().__init__(log, ("-m", "tests.browser.commands"), environment, **pipes)

    def run(self, words: tuple[str, ...]) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, self.said()
        answer: str = json.loads(line)
        return answer

    def stop(self) -> None:
        super().stop()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


class Stack:
    """What the tests need of it, whichever way it runs."""

    def __init__(self, directory: Path, port: int, environment: dict[str, str]) -> None:
        self.directory = directory
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.environment = environment
        self._commands: Commands | None = None

    def start_web(self) -> None:
        """Start what answers the browser, on its port."""
        raise NotImplementedError

    def stop_web(self) -> None:
        raise NotImplementedError

    def run(self, *words: str) -> str:
        """Run a management command; what it printed."""
        if self._commands is None:
            self._commands = Commands(self.directory / "commands.log", self.environment)
        return self._commands.run(words)

    def manage(self, *words: str) -> dict[str, Any]:
        """Run a management command with --json; what it reported."""
        report: dict[str, Any] = json.loads(self.run(*words, "--json"))
        return report

    def sign_in_path(self, email: str) -> str:
        path: str = self.manage("sign_in_link", email)["path"]
        return path

    def stop(self) -> None:
        if self._commands is not None:
            self._commands.stop()
        self.stop_web()


class ServedStack(Stack):
    """Three processes, as docs/operations.md starts them."""

    _web: Process | None = None
    _workers: tuple[Process, ...] = ()

    def start(self) -> None:
        for words in (["migrate"], ["collectstatic", "--noinput"]):
            command = [sys.executable, "manage.py", *words, "--verbosity", "0"]
            subprocess.run(command, cwd=ROOT, env=self.environment, check=True)
        worker = self._celery("worker", "--pool", "threads")
        beat = self._celery("beat", "--schedule", str(self.directory / "beat"))
        self._workers = (worker, beat)
        self.start_web()
        worker.wait_for("[queues]")

    def start_web(self) -> None:
        uvicorn = ("-m", "uvicorn", "overview.asgi:application", "--port", str(self.port))
        words = ("--lifespan", "on", "--no-access-log", "--timeout-graceful-shutdown", "1")
        self._web = Process(self.directory / "web.log", uvicorn + words, self.environment)
        self._web.wait_for("Uvicorn running")

    def stop_web(self) -> None:
        if self._web is not None:
            self._web.stop()

    def stop(self) -> None:
        super().stop()
        for worker in self._workers:
            worker.stop()

    def _celery(self, kind: str, *words: str) -> Process:
        words = ("-m", "celery", "-A", "overview", kind, *words)
        return Process(self.directory / f"{kind}.log", words, self.environment)


class EmbeddedStack(Stack):
    """One process, as `make run` starts it."""

    def __init__(self, directory: Path) -> None:
        self._host = Host(directory, **QUICK)
        super().__init__(directory, self._host.port, self._host.environment)

    def start_web(self) -> None:
        self._host.start()

    def stop_web(self) -> None:
        if self._host.process is not None and self._host.process.returncode is None:
            self._host.stop()


@contextmanager
def running_stack(directory: Path) -> Iterator[Stack]:
    """Start what the environment allows, in a folder of its own."""
    with ExitStack() as held:
        if "DATABASE_URL" not in os.environ or "REDIS_URL" not in os.environ:
            embedded = EmbeddedStack(directory)
            held.callback(embedded.stop)
            embedded.start_web()
            yield embedded
            return
        environment = {
            **os.environ,
            **QUICK,
            **SECRETS,
            "VAR_DIR": str(directory),
            "DATABASE_URL": held.enter_context(_new_database(os.environ["DATABASE_URL"])),
            # Of its own: pushes go to the whole server, whatever the database's number.
            "REDIS_URL": held.enter_context(valkey()),
        }
        served = ServedStack(directory, free_port(), environment)
        held.callback(served.stop)
        served.start()
        yield served


@contextmanager
def _new_database(url: str) -> Iterator[str]:
    """A fresh database on the same server, gone afterwards; its address."""
    name = f"stack_{uuid4().hex[:12]}"
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}".encode())
        try:
            yield urlsplit(url)._replace(path=f"/{name}").geturl()
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
