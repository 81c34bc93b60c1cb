"""The clients of the npm SDK, 1.x and 2.x, as processes: what they say comes back as JSON."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "node"
OLDEST_NODE = 20
INSTALL_SECONDS = 90
TALK_SECONDS = 20
# Two retries soon after another: a machine without a network should hear of it soon.
NPM_CI = [
    "ci",
    "--no-audit",
    "--no-fund",
    "--ignore-scripts",
    "--loglevel=error",
    "--fetch-retries=2",
    "--fetch-retry-mintimeout=1000",
    "--fetch-retry-maxtimeout=2000",
]


def install(folder, *options, seconds=INSTALL_SECONDS):
    """Install what a folder's package-lock.json names, unless it is there; why not, or None."""
    lock, stamp = folder / "package-lock.json", folder / "node_modules" / ".package-lock.json"
    if node_version() < OLDEST_NODE or shutil.which("npm") is None:
        return f"Node.js {OLDEST_NODE} or later is not installed, or npm is not."
    with lock.open(encoding="utf-8") as held:
        # npm first takes away what is there: of two processes one waits, and then finds it done.
        fcntl.flock(held, fcntl.LOCK_EX)
        if stamp.exists() and stamp.stat().st_mtime >= lock.stat().st_mtime:
            return None
        return _npm_ci(folder, options, seconds)


def _npm_ci(folder, options, seconds):
    try:
        result = subprocess.run(
            ["npm", *NPM_CI, *options],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        return f"npm ci took longer than {seconds} s."
    return f"npm ci failed: {result.stderr.strip()[:500]}" if result.returncode else None


def node_version():
    """The major version of the Node.js on the path; 0 where there is none."""
    if shutil.which("node") is None:
        return 0
    said = subprocess.run(["node", "--version"], capture_output=True, text=True, timeout=10).stdout
    return int(said.strip().removeprefix("v").partition(".")[0] or 0)


def require_clients():
    """Have the clients, or skip; where CI runs, their absence is a failure."""
    problem = install(FOLDER)
    if problem and os.environ.get("CI"):
        pytest.fail(problem)
    elif problem:
        pytest.skip(problem)


def talk(sdk, url, token, *steps):
    """Hold a conversation; node/talk.mjs says what goes in and what comes out."""
    said = subprocess.run(
        ["node", "talk.mjs"],
        cwd=FOLDER,
        input=json.dumps({"sdk": sdk, "url": url, "token": token, "steps": steps}),
        capture_output=True,
        text=True,
        timeout=TALK_SECONDS,
    )
    assert said.returncode == 0, said.stderr
    return json.loads(said.stdout)
