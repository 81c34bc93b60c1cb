"""The product as production runs it: two web processes behind one address, two workers, beat.

    with services() as variables, Stack(directory, variables) as stack:
        ... stack.url, stack.webs[0].url, stack.manage("workspace", "list") ...

Every process is one of the operating system's, with a log in the folder, and the command line is
the Procfile's. Tests, `make production-like` and the fault harness share it.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import secrets
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cryptography.fernet import Fernet

from tests.deployed import procfile, words_of
from tests.hosts import ROOT, START_SECONDS, free_port
from workspaces.background import BackgroundLoop

STOP_SECONDS = 10


class Managed:
    """One process that can be started, stopped, killed, and started again."""

    def __init__(
        self,
        name: str,
        words: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        cwd: Path = ROOT,
    ) -> None:
        self.name, self.words, self.cwd = name, words, cwd
        self.log = folder / f"{name}.log"
        self._environment = environment
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        return self.process.pid if self.process is not None else None

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        with self.log.open("ab") as log:
            # A session of its own: a terminal's Ctrl-C ends them in order, not all at once.
            self.process = subprocess.Popen(
                self.words,
                cwd=self.cwd,
                env=dict(self._environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def ask_to_stop(self) -> None:
        if self.process is not None and self.is_running:
            self.process.send_signal(signal.SIGTERM)

    def stop(self) -> int | None:
        """Stop it as a service manager does; its exit status, None if it had to be killed."""
        self.ask_to_stop()
        if self.process is None:
            return None
        try:
            return self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    def kill(self) -> None:
        """As if its machine lost power."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()


class Web(Managed):
    """A web process on a port of its own, which it keeps when it is started again."""

    def __init__(self, name: str, environment: Mapping[str, str], folder: Path) -> None:
        self.port = free_port()
        words = words_of(procfile()["web"], {"PORT": str(self.port)})
        super().__init__(name, words, environment, folder)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


class Front:
    """One address for several ports: each connection goes to the next one that listens, and a GET
    that a stopping one dropped to the one after it, as deploy/Caddyfile has it."""

    def __init__(self, ports: Sequence[int], port: int = 0) -> None:
        turns = [[*ports[first:], *ports[:first]] for first in range(len(ports))]
        self._turns = itertools.cycle(turns)
        self._loop = BackgroundLoop("front")
        self._serving: set[asyncio.Task[None]] = set()
        self._server = self._loop.run(self._listen(port), 5)
        self.port: int = self._server.sockets[0].getsockname()[1]

    async def _listen(self, port: int) -> asyncio.Server:
        return await asyncio.start_server(self._accept, "127.0.0.1", port)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving = asyncio.create_task(self._serve(reader, writer))
        self._serving.add(serving)
        serving.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.read(65536)
        may_repeat = asked.startswith(b"GET ")
        for port in next(self._turns):
            with contextlib.suppress(OSError):
                inside, outside = await asyncio.open_connection("127.0.0.1", port)
                outside.write(asked)
                answer = await inside.read(65536) if may_repeat else b""
                if answer or not may_repeat:
                    break
        else:
            writer.close()
            return
        writer.write(answer)
        await asyncio.gather(_pump(reader, outside), _pump(inside, writer))

    def close(self) -> None:
        self._loop.run(self._end(), 5)
        self._loop.close()

    async def _end(self) -> None:
        """A browser keeps connections open on which it never asks anything."""
        self._server.close()
        serving = list(self._serving)
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError, RuntimeError):
        writer.close()


class Stack:
    """Everything but the services, whose addresses are in `variables`."""

    def __init__(
        self,
        folder: Path,
        variables: Mapping[str, str],
        *,
        beats: int = 1,
        port: int = 0,
        **environment: str,
    ) -> None:
        self.folder = folder
        outside = {"DEBUG", "ALLOWED_HOSTS", "SECURE_SSL_REDIRECT", "IS_HTTPS"}
        kept = {name: value for name, value in os.environ.items() if name not in outside}
        self.environment = {
            **kept,
            "VAR_DIR": str(folder),
            "SECRET_KEY": secrets.token_urlsafe(50),
            "SECRETS_KEYS": Fernet.generate_key().decode(),
            "CONNECTOR_ALLOWED_NETWORKS": "127.0.0.0/8,::1/128",
            "DEMO": "0",
            **variables,
            **environment,
        }
        self.webs = [Web(f"web{n}", self.environment, folder) for n in (1, 2)]
        self.workers = [self._other("worker", n) for n in (1, 2)]
        self.beats = [self._other("beat", n + 1) for n in range(beats)]
        self._port = port

    def _other(self, kind: str, number: int) -> Managed:
        words = words_of(procfile()[kind], {"PORT": str(number)})
        return Managed(f"{kind}{number}", words, self.environment, self.folder)

    @property
    def processes(self) -> Iterator[Managed]:
        yield from [*self.webs, *self.workers, *self.beats]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.front.port}"

    def __enter__(self) -> Stack:
        with ThreadPoolExecutor() as both:
            static = both.submit(self.manage, "collectstatic", "--noinput", "--verbosity", "0")
            self.manage("migrate", "--verbosity", "0")
            static.result()
        self.front = Front([web.port for web in self.webs], self._port)
        try:
            for process in self.processes:
                process.start()
            self.wait_until_ready()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            process.ask_to_stop()
        for process in self.processes:
            process.stop()
        self.front.close()

    def manage(self, *words: str) -> str:
        """Run a command to its end; what it printed."""
        return subprocess.run(
            [sys.executable, "manage.py", *words],
            cwd=ROOT,
            env=self.environment,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            timeout=START_SECONDS,
        ).stdout

    def wait_until_ready(self, seconds: float = START_SECONDS) -> None:
        """Wait until each web process says that it is. Raises: TimeoutError."""
        deadline = time.monotonic() + seconds
        for web in self.webs:
            while not is_ready(web.url):
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{web.name} is not ready; see {self.folder}")
                time.sleep(0.1)


def is_ready(url: str, path: str = "/readyz") -> bool:
    try:
        with urllib.request.urlopen(url + path, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
