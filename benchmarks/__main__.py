"""Every benchmark in turn, and docs/performance.md written from what they print.

    make bench

Each figure is a ratio or a size of one run on this machine; nothing is timed in a test.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BENCHMARKS = (
    "overview_page",
    "live_update",
    "facet_reads",
    "memory",
    "tool_calls",
    "uri_templates",
)


def main() -> None:
    sections = [f"# Performance\n\nMade by `make bench` on {machine()}.\n"]
    for name in BENCHMARKS:
        print(f"-- {name}", flush=True)
        run = subprocess.run(
            [sys.executable, "-m", f"benchmarks.{name}"], cwd=ROOT, capture_output=True, text=True
        )
        if run.returncode != 0:
            sys.exit(f"{name} failed:\n{run.stderr[-3000:]}")
        print(run.stdout)
        sections.append(f"## {name}\n\n{run.stdout.strip()}\n")
    (ROOT / "docs" / "performance.md").write_text("\n".join(sections), encoding="utf-8")


def machine() -> str:
    """What the figures were taken on."""
    return f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"


if __name__ == "__main__":
    main()
