"""The README shows the examples that the tests run, word for word."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("example", ["facet_server.py", "typescript/server.ts"])
def test_the_readme_holds_the_example_as_it_runs(example):
    code = (ROOT / "examples" / example).read_text(encoding="utf-8").strip()
    assert code in (ROOT / "README.md").read_text(encoding="utf-8")


def test_no_lock_file_names_a_host():
    for lock in ROOT.glob("requirements*.lock"):
        assert "://" not in lock.read_text(encoding="utf-8")
