"""The databases that the tests bring with them come, are real, and go without a trace."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import redis

from .services import services

ROOT = Path(__file__).parent.parent
REPORT = "import os; print(os.environ['DATABASE_URL'], os.environ['REDIS_URL'], flush=True)"


def test_both_are_real_and_empty() -> None:
    with services() as variables:
        with psycopg.connect(variables["DATABASE_URL"]) as connection:
            tables = connection.execute(
                "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
            ).fetchone()
        with redis.from_url(variables["REDIS_URL"]) as client:
            keys = client.dbsize()
    assert (tables, keys) == ((0,), 0)


def test_a_command_gets_the_addresses_and_its_exit_code_comes_back(folder: Path) -> None:
    result = run(folder, sys.executable, "-c", f"{REPORT}; raise SystemExit(3)")
    said, _ = result.communicate(timeout=60)
    assert said.startswith("postgresql://") and " redis://" in said
    assert result.returncode == 3
    assert list(folder.iterdir()) == []


def test_nothing_is_left_when_it_is_told_to_end(folder: Path) -> None:
    result = run(folder, sys.executable, "-c", f"{REPORT}; import time; time.sleep(60)")
    assert result.stdout is not None
    database_url, redis_url = result.stdout.readline().split()
    result.send_signal(signal.SIGTERM)
    result.communicate(timeout=30)
    assert result.returncode == 128 + signal.SIGTERM
    assert list(folder.iterdir()) == []
    for url in (database_url, redis_url):
        port = url.rsplit(":", 1)[1].split("/")[0]
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", int(port)), 1)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A temporary folder that nobody, who runs PostgreSQL for root, can get through to."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def run(folder: Path, *command: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.services", *command],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        text=True,
    )
