"""The product itself, started as people start it, in a folder of its own."""

from __future__ import annotations

import os
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
START_SECONDS = 60


class Host:
    """`manage.py serve` as a process, with its own `VAR_DIR`, on SQLite and memory alone."""

    def __init__(self, directory, port=0, **environment):
        outside = {"DATABASE_URL", "REDIS_URL", "SECRET_KEY", "SECRETS_KEYS", "DEMO"}
        kept = {name: value for name, value in os.environ.items() if name not in outside}
        self.environment = {**kept, "VAR_DIR": str(directory), **environment}
        self.port = port or free_port()
        self.process: Any = None
        self.link = ""

    def manage(self, *words):
        """Run a command to its end; what it printed."""
        return subprocess.run(
            [sys.executable, "manage.py", *words],
            cwd=ROOT,
            env=self.environment,
            check=True,
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
        ).stdout

    def start(self):
        """Start, and wait for the greeting; the address that it says to open."""
        self.lines = queue.Queue()
        self.manage("collectstatic", "--noinput", "--verbosity", "0")
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "serve", "--port", str(self.port)],
            cwd=ROOT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        self.link = self.line(r"Open (http://\S+)")
        return self.link

    def _listen(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def line(self, pattern):
        """Wait for a line that matches; its first group."""
        said = []
        deadline = time.monotonic() + START_SECONDS
        while True:
            line = self.lines.get(timeout=max(0.1, deadline - time.monotonic()))
            if line is None:
                raise AssertionError("The host ended: " + "".join(said))
            said.append(line)
            if match := re.search(pattern, line):
                return match[1]

    def stop(self, signal_number=signal.SIGINT):
        """Stop as Ctrl-C does; the seconds that it took."""
        started = time.monotonic()
        self.process.send_signal(signal_number)
        try:
            self.process.wait(20)
        finally:
            self.process.kill()
            self.process.wait()
            self._listener.join(5)
            self.process.stdout.close()
        return time.monotonic() - started

    def group_is_gone(self):
        """Whether no process of its group is left."""
        try:
            os.killpg(self.process.pid, 0)
        except ProcessLookupError:
            return True
        return False


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]
