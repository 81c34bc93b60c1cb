"""The example servers of the demo, and their start and stop as processes of their own.

Knows nothing of the site that connects to them: a start gives addresses, a stop takes them away.
"""

from __future__ import annotations

import fcntl
import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

ROOT = Path(__file__).resolve().parent.parent
TYPESCRIPT = ROOT / "examples" / "typescript"
LISTENING = "listening on "
NPM_SECONDS = 90
# One quick retry: a machine without a network should hear of it soon.
NPM_CI = [
    "ci",
    "--no-audit",
    "--no-fund",
    "--ignore-scripts",
    "--loglevel=error",
    "--fetch-retries=1",
    "--fetch-retry-mintimeout=1000",
    "--fetch-retry-maxtimeout=1000",
]
STOP_SECONDS = 1.5


def _python(module: str) -> Callable[[int], list[str]]:
    return lambda port: [sys.executable, "-m", f"examples.{module}", "--port", str(port)]


def _node(port: int) -> list[str]:
    return ["node", "--import", "tsx", "main.ts", "--port", str(port)]


@dataclass(frozen=True, slots=True)
class Example:
    """One example server. `command` gives the words that start it on a port, 0 for a free one;
    `placements` is what a connector to it declares, as in the `_meta` of a server.json."""

    slug: str
    name: str
    command: Callable[[int], list[str]]
    placements: tuple[Mapping[str, object], ...]
    needs_node: bool = False


@dataclass(frozen=True, slots=True)
class Started:
    """What came of a start: the addresses by slug, and one line for people for each that is not
    there."""

    urls: dict[str, str]
    skipped: list[str]


def _sidebar(route: str, label: str, icon: str, priority: int) -> tuple[Mapping[str, object], ...]:
    placement = {"slot": "sidebar.apps", "route": route, "label": label, "icon": icon}
    return ({**placement, "priority": priority},)


EXAMPLES = (
    Example("crm", "CRM", _python("crm"), _sidebar("crm", "CRM", "users", 10)),
    Example(
        "outbound",
        "Outbound",
        _python("outbound_2025"),
        _sidebar("outbound", "Outbound", "send", 20),
    ),
    Example("acme", "Acme", _node, _sidebar("acme", "Acme", "notebook-pen", 30), needs_node=True),
    Example("billing", "Billing", _python("slow"), _sidebar("billing", "Billing", "receipt", 40)),
)


class ExampleServers:
    """Start examples on the ports that they had last time, and stop them.

    directory: where the ports and the logs are kept; made if missing.
    The processes end when this one does, however it ends: they hold the other end of a pipe.
    """

    def __init__(self, directory: Path, examples: Sequence[Example] = EXAMPLES) -> None:
        self.directory = directory
        self.examples = examples
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> ExampleServers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self, timeout_seconds: float = 20) -> Started:
        """Start all of them, and wait until each listens, fails, or the time is over.

        A first start installs what the TypeScript example needs, which the time does not count.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        ports = self._remembered_ports()
        urls: dict[str, str] = {}
        skipped: list[str] = []
        # Those that need an installation first go last, so that the others start meanwhile.
        for example in sorted(self.examples, key=lambda example: example.needs_node):
            problem = install_typescript() if example.needs_node else None
            if problem is None:
                self._launch(example, ports.get(example.slug, 0))
            else:
                skipped.append(f"{example.name} is left out: {problem}")
        deadline = time.monotonic() + timeout_seconds
        for example in self.examples:
            if example.slug in self.processes:
                if url := self._wait_until_listening(example.slug, deadline):
                    urls[example.slug] = url
                else:
                    self.processes[example.slug].kill()
                    skipped.append(f"{example.name} did not start: {self._last_line(example.slug)}")
        self._remember_ports({**ports, **{slug: _port_of(url) for slug, url in urls.items()}})
        return Started(urls, skipped)

    def stop(self) -> None:
        """Stop all of them; what does not go when asked is killed. Takes at most 2 s."""
        for process in self.processes.values():
            process.terminate()
        deadline = time.monotonic() + STOP_SECONDS
        for process in self.processes.values():
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdin is not None:
                process.stdin.close()
        self.processes.clear()

    def _launch(self, example: Example, port: int) -> None:
        command = example.command(port if _is_free(port) else 0)
        with self._log(example.slug).open("wb") as log:
            # A session of its own keeps a terminal's Ctrl-C from reaching it before stop() does.
            self.processes[example.slug] = subprocess.Popen(
                [*command, "--until-stdin-closes"],
                cwd=TYPESCRIPT if example.needs_node else ROOT,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _wait_until_listening(self, slug: str, deadline: float) -> str | None:
        process = self.processes[slug]
        while True:
            has_ended = process.poll() is not None
            for line in self._log(slug).read_text(errors="replace").splitlines(keepends=True):
                if line.startswith(LISTENING) and line.endswith("\n"):
                    return line.removeprefix(LISTENING).strip()
            if has_ended or time.monotonic() > deadline:
                return None
            time.sleep(0.02)

    def _last_line(self, slug: str) -> str:
        lines = self._log(slug).read_text(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")

    def _log(self, slug: str) -> Path:
        return self.directory / f"{slug}.log"

    def _remembered_ports(self) -> dict[str, int]:
        try:
            ports = json.loads((self.directory / "ports.json").read_text())
        except (OSError, ValueError):
            return {}
        if not isinstance(ports, dict):
            return {}
        return {slug: port for slug, port in ports.items() if port in range(1024, 65536)}

    def _remember_ports(self, ports: dict[str, int]) -> None:
        (self.directory / "ports.json").write_text(json.dumps(ports, indent=2) + "\n")


def install_typescript() -> str | None:
    """Install the packages that package-lock.json names, unless they are there.

    Returns why the example cannot run, in words for people, or None.
    """
    if shutil.which("node") is None:
        return "Node.js is not installed (version 20 or later runs it)."
    lock, installed = TYPESCRIPT / "package-lock.json", TYPESCRIPT / "node_modules"
    stamp = installed / ".package-lock.json"
    with lock.open(encoding="utf-8") as held:
        # npm first takes away what is there: of two processes one waits, and then finds it done.
        fcntl.flock(held, fcntl.LOCK_EX)
        if stamp.exists() and stamp.stat().st_mtime >= lock.stat().st_mtime:
            return None
        return _npm_ci()


def _npm_ci() -> str | None:
    npm = shutil.which("npm")
    if npm is None:
        return "npm, which installs its packages, is not installed."
    try:
        result = subprocess.run(
            [npm, *NPM_CI],
            cwd=TYPESCRIPT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=NPM_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"npm ci took longer than {NPM_SECONDS} s."
    if result.returncode != 0:
        said = result.stderr.strip().splitlines() or ["no reason given"]
        return f"npm ci failed: {said[0]}"
    return None


def _is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def _port_of(url: str) -> int:
    return int(url.rsplit(":", 1)[1].split("/", 1)[0])
