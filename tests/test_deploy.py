"""What operators read and run names what there is."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
MANUAL = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
SETTINGS = (ROOT / "overview" / "settings.py").read_text(encoding="utf-8")
# Django's and Celery's own ways to say it, and what only developers set.
NOT_FOR_OPERATORS = {"DEBUG"}


def variables():
    """Everything that the settings take from the environment."""
    named = re.findall(r'env(?:\.\w+)?\(\s*"([A-Z_]+)"', SETTINGS)
    return {*named, *re.findall(r'kept_key\("([A-Z_]+)"', SETTINGS)}


def test_every_setting_is_documented():
    # "`A_B`, `…_C`" stands for A_B and A_C.
    endings = re.findall(r"`…(_[A-Z_]+)`", MANUAL)
    documented = {*re.findall(r"[A-Z][A-Z_]{3,}", MANUAL)}
    missing = variables() - documented - NOT_FOR_OPERATORS
    assert {each for each in missing if not each.endswith(tuple(endings))} == set()


def test_the_deployments_set_variables_that_exist():
    compose = (ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8")
    block = compose.split("environment: &environment")[1].split("secrets:")[0]
    named = {each.removesuffix("_FILE") for each in re.findall(r"^    ([A-Z_]+):", block, re.M)}
    assert named <= variables()
    assert len(named) > 5


def test_each_deployment_starts_web_worker_and_clock():
    started = {
        path.name: path.read_text(encoding="utf-8")
        for path in [ROOT / "deploy" / "Procfile", *(ROOT / "deploy" / "systemd").iterdir()]
    }
    text = "\n".join(started.values())
    for words in ["uvicorn overview.asgi:application", "-A overview worker", "-A overview beat"]:
        assert text.count(words) == 2, words
