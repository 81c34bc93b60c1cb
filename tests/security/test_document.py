"""docs/security.md names tests; each of them exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
NAMED = TEST.findall((ROOT / "docs" / "security.md").read_text(encoding="utf-8"))


def functions_of(path: str) -> set[str]:
    text = (ROOT / path).read_text(encoding="utf-8")
    return set(re.findall(r"^(?:async )?def (test_\w+)", text, re.MULTILINE))


def test_every_test_that_the_threat_model_names_exists():
    assert len(NAMED) > 100
    missing = [f"{path}::{name}" for path, name in NAMED if name not in functions_of(path)]
    assert missing == []


def test_every_line_of_the_threat_model_has_a_test():
    text = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    tables = text.partition("## Workspaces are apart")[2].partition("## Audit")[0]
    lines = [line for line in tables.splitlines() if line.startswith("| ")]
    without = [
        line
        for line in lines
        if not TEST.search(line) and "proved by" not in line and not line.startswith("|---")
    ]
    assert without == []
