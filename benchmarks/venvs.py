"""Programs out of the package registry, each in a virtual environment, while they are used."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

INSTALL_SECONDS = 240
START_SECONDS = 240


class LeftOut(Exception):
    """A program cannot take part. The words say why."""


def installed(folder: Path, package: str) -> tuple[Path, str]:
    """Install a package below the folder, once; its Python, and which version came."""
    python = folder / package / "bin" / "python"
    uv = Path(sys.executable).with_name("uv")
    commands = [
        [uv, "venv", "--quiet", "--python", sys.executable, folder / package],
        [uv, "pip", "install", "--quiet", "--python", python, package],
    ]
    if python.exists():
        commands = []
    version = f"import importlib.metadata as m; print(m.version({package!r}))"
    try:
        for command in commands:
            _run(command)
        return python, _run([python, "-c", version]).strip()
    except subprocess.TimeoutExpired:
        raise LeftOut(f"it did not install within {INSTALL_SECONDS} s") from None
    except (OSError, subprocess.CalledProcessError) as error:
        words = str(getattr(error, "stderr", None) or error).strip().splitlines()
        raise LeftOut(f"it did not install: {words[-1][:200] if words else error}") from None


def _run(command: Sequence[object]) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(
        words, check=True, capture_output=True, text=True, timeout=INSTALL_SECONDS
    )
    return done.stdout


@contextlib.contextmanager
def running(
    command: Sequence[object], folder: Path, port: int, environment: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Run a server until the block ends. Raises: LeftOut when it does not listen in time."""
    process = subprocess.Popen(
        [str(word) for word in command],
        cwd=folder,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + START_SECONDS
        while not _listens(port):
            if process.poll() is not None:
                raise LeftOut(f"it ended with status {process.returncode} as it was started")
            if time.monotonic() > deadline:
                raise LeftOut(f"it did not start within {START_SECONDS} s")
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.5):
        return True
    return False


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]
