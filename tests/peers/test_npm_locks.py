"""The npm locks hold for every registry: none is named, and every package has its digest."""

from __future__ import annotations

import json

import pytest

from tests.hosts import ROOT


@pytest.mark.parametrize(
    "folder", ["examples/typescript", "tests/peers/node", "tests/peers/conformance"]
)
def test_a_lock_names_digests_and_no_registry(folder):
    lock = json.loads((ROOT / folder / "package-lock.json").read_text(encoding="utf-8"))
    packages = {name: each for name, each in lock["packages"].items() if name}

    assert packages
    assert not [name for name, each in packages.items() if "resolved" in each]
    assert not [name for name, each in packages.items() if "integrity" not in each]
