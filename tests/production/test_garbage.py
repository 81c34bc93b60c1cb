"""Python's garbage collector in the processes that stay."""

from __future__ import annotations

import subprocess
import sys

import pytest

from overview.garbage import THRESHOLDS
from tests.hosts import ROOT

WEB = "import overview.asgi"
WORKER = "import overview; from celery.signals import worker_ready; worker_ready.send(sender=None)"


@pytest.mark.parametrize("start", [WEB, WORKER])
def test_what_a_process_starts_with_is_never_looked_at_again(start, tmp_path):
    asked = "import gc; print(gc.get_threshold() == {0}, gc.get_freeze_count() > 10_000)"
    done = subprocess.run(
        [sys.executable, "-c", f"{start}; {asked.format(THRESHOLDS)}"],
        cwd=ROOT,
        env={"VAR_DIR": str(tmp_path), "DJANGO_SETTINGS_MODULE": "overview.settings"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.split() == ["True", "True"], done.stderr
