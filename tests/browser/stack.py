"""The real stack for the browser: as production runs it, with two web processes, two workers and
beat, where the environment names PostgreSQL and Redis or Valkey; else the embedded default.

    with running_stack(directory) as stack:
        stack.manage("workspace", "create", "acme", "--name", "Acme", "--admin", "a@example.com")
        page.goto(stack.url + stack.sign_in_path("a@example.com"))
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg

from tests import stack as production
from tests.hosts import ROOT, Host
from tests.services import valkey

STOP_SECONDS = 10
# Times that a test can wait for. Nothing else differs from a real start.
QUICK = {
    "DEMO": "0",
    "FACET_FRESH_SECONDS": "0.2",
    "FACET_LISTING_SECONDS": "2",
    "CONNECTOR_ALLOWED_NETWORKS": "127.0.0.0/8",
}


class Commands:
    """See tests/browser/commands.py."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        self._log = directory / "commands.log"
        with self._log.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.browser.commands"],
                cwd=ROOT,
                env=dict(environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )

    def run(self, words: tuple[str, ...]) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, self._log.read_text()
        answer: str = json.loads(line)
        return answer

    def stop(self) -> None:
        """It ends with its input."""
        try:
            self._process.communicate(timeout=STOP_SECONDS)
        finally:
            self._process.kill()


class Stack:
    """What the tests need of it, whichever way it runs."""

    url: str

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        self._commands = Commands(directory, environment)

    def start_web(self) -> None:
        """Start what answers the browser, where it was before."""
        raise NotImplementedError

    def stop_web(self) -> None:
        raise NotImplementedError

    def run(self, *words: str) -> str:
        """Run a management command; what it printed."""
        return self._commands.run(words)

    def manage(self, *words: str) -> dict[str, Any]:
        """Run a management command with --json; what it reported."""
        report: dict[str, Any] = json.loads(self.run(*words, "--json"))
        return report

    def sign_in_path(self, email: str) -> str:
        path: str = self.manage("sign-in-link", email)["path"]
        return path

    def stop(self) -> None:
        self._commands.stop()


class ServedStack(Stack):
    def __init__(self, directory: Path, running: production.Stack) -> None:
        super().__init__(directory, running.environment)
        self._running = running
        self.url = running.url

    def start_web(self) -> None:
        for web in self._running.webs:
            web.start()
        self._running.wait_until_ready()

    def stop_web(self) -> None:
        for web in self._running.webs:
            web.ask_to_stop()
        for web in self._running.webs:
            web.stop()


class EmbeddedStack(Stack):
    def __init__(self, directory: Path, host: Host) -> None:
        super().__init__(directory, host.environment)
        self._host = host
        self.url = f"http://127.0.0.1:{host.port}"

    def start_web(self) -> None:
        self._host.start()

    def stop_web(self) -> None:
        self._host.stop()


@contextmanager
def running_stack(directory: Path) -> Iterator[Stack]:
    """Start what the environment allows, in a folder of its own."""
    with ExitStack() as held:
        stack: Stack
        if "DATABASE_URL" in os.environ and "REDIS_URL" in os.environ:
            variables = {
                "DATABASE_URL": held.enter_context(_new_database(os.environ["DATABASE_URL"])),
                # Of its own: pushes reach the whole server, whatever the database's number.
                "REDIS_URL": held.enter_context(valkey()),
            }
            running = production.Stack(directory, {**variables, **QUICK})
            stack = ServedStack(directory, held.enter_context(running))
        else:
            host = Host(directory, **QUICK)
            host.start()
            held.callback(host.stop)
            stack = EmbeddedStack(directory, host)
        held.callback(stack.stop)
        yield stack


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
