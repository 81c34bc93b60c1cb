"""ContextForge's gateway, out of the package registry, for the benchmarks to stand beside."""

from __future__ import annotations

import contextlib
import json
import secrets
import subprocess
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.venvs import LeftOut, free_port, installed, running

ADMIN = "admin@example.com"
REQUEST_SECONDS = 60


@dataclass(frozen=True, slots=True)
class ContextForge:
    """One that runs. token: of its administrator."""

    version: str
    base: str
    token: str = field(repr=False)

    def ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        """Its answer. Raises: LeftOut when it refuses."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        data = json.dumps(body).encode() if body else None
        request = urllib.request.Request(f"{self.base}{path}", data, headers)
        try:
            with urllib.request.urlopen(request, timeout=REQUEST_SECONDS) as answer:
                return json.load(answer)
        except (OSError, ValueError) as error:
            raise LeftOut(f"{path}: {error}") from None

    def add(self, name: str, url: str) -> None:
        """Register a server as one of its gateways."""
        self.ask("/gateways", {"name": name, "url": url, "transport": "STREAMABLEHTTP"})


@contextlib.contextmanager
def contextforge(folder: Path, **settings: str) -> Iterator[ContextForge]:
    """Run it as it is installed: one process, on SQLite, as our embedded default.

    It may reach this machine, keeps its caches, and no limit of calls is in the way.
    Raises: LeftOut.
    """
    python, version = installed(folder, "mcp-contextforge-gateway")
    port, key = free_port(), secrets.token_urlsafe(48)
    environment = {
        "DATABASE_URL": f"sqlite:///{folder}/contextforge-{port}.db",
        "JWT_SECRET_KEY": key,
        "AUTH_ENCRYPTION_SECRET": secrets.token_urlsafe(48),
        "PLATFORM_ADMIN_EMAIL": ADMIN,
        "PLATFORM_ADMIN_PASSWORD": f"Aa1!{secrets.token_hex(16)}",
        "BASIC_AUTH_PASSWORD": f"Aa1!{secrets.token_hex(16)}",
        "SSRF_ALLOW_LOCALHOST": "true",
        "SSRF_ALLOW_PRIVATE_NETWORKS": "true",
        "RATE_LIMITING_ENABLED": "false",
        "TOOL_RATE_LIMIT": "1000000",
        "CACHE_TYPE": "memory",
        "LOG_LEVEL": "ERROR",
        # Of those that share this file only one checks its servers.
        "TMPDIR": str(folder),
        "FILELOCK_NAME": f"contextforge-{port}.lock",
        **settings,
    }
    command = [python.with_name("mcpgateway"), "--host", "127.0.0.1", "--port", port]
    with running(command, folder, port, environment):
        token = _token(python, key, environment)
        yield ContextForge(version, f"http://127.0.0.1:{port}", token)


def _token(python: Path, key: str, environment: dict[str, str]) -> str:
    words = [python, "-m", "mcpgateway.utils.create_jwt_token", "--username", ADMIN, "--admin"]
    made = subprocess.run(
        [*map(str, words), "--exp", "120", "--secret", key],
        env=environment,
        capture_output=True,
        text=True,
        timeout=REQUEST_SECONDS,
    )
    if made.returncode != 0:
        raise LeftOut("it made no token")
    return made.stdout.strip().splitlines()[-1]
