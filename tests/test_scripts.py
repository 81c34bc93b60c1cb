"""The commands of `scripts/` can begin: each finds what it imports, with no test around it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.hosts import ROOT

SCRIPTS = sorted(
    path.name
    for path in (ROOT / "scripts").iterdir()
    if path.read_text(encoding="utf-8").startswith("#!/usr/bin/env python3")
)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_finds_what_it_imports(name, tmp_path):
    load = f"import runpy; runpy.run_path('scripts/{name}', run_name='loaded')"
    done = subprocess.run(
        [sys.executable, "-c", load],
        cwd=ROOT,
        env={"VAR_DIR": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr


def test_there_are_scripts():
    assert {"screenshots", "production-like"} <= {*SCRIPTS}
