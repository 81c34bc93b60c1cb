"""What the audit of dependencies says, and that it never passes in silence."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

GOOD = {"name": "django", "version": "5.2.19", "vulns": []}
FLAW = {"id": "PYSEC-2099-1", "fix_versions": ["5.2.20"], "aliases": [], "description": "…"}
BAD = {"name": "django", "version": "5.2.19", "vulns": [FLAW]}
UNKNOWN = {"name": "vine", "skip_reason": "Dependency not found on PyPI"}


@pytest.fixture
def verdict():
    return runpy.run_path(str(ROOT / "scripts" / "audit"))["verdict"]


def test_a_known_vulnerability_is_named_with_its_repair_and_fails(verdict):
    lines, status = verdict([GOOD, BAD], is_required=False)
    assert (lines, status) == (["django 5.2.19: PYSEC-2099-1, fixed in 5.2.20"], 1)


def test_nothing_known_passes(verdict):
    assert verdict([GOOD, GOOD], True) == (["No known vulnerability in 2 packages."], 0)


@pytest.mark.parametrize("found", ["connection refused", [GOOD, UNKNOWN]])
def test_what_could_not_be_asked_is_said_and_fails_only_where_it_is_required(verdict, found):
    lines, status = verdict(found, is_required=False)
    assert lines[0].startswith("NOT AUDITED")
    assert status == 0
    assert verdict(found, is_required=True) == (lines, 2)


def test_a_vulnerability_counts_although_other_packages_are_not_known(verdict):
    lines, status = verdict([BAD, UNKNOWN], is_required=False)
    assert (len(lines), status) == (2, 1)


def test_the_check_command_asks():
    assert "scripts/audit" in (ROOT / "scripts" / "check").read_text(encoding="utf-8")
