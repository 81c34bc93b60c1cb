"""What several workers of pytest need: `make test` runs two.

Each after the first has a Valkey of its own, because pushes reach the whole server, whatever the
database's number. PostgreSQL's test database is named by pytest-django.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import ExitStack

import pytest

from tests.services import valkey

SHARING = {"browser", "examples", "peers", "production"}
"""Folders whose files share what takes long to start: each file stays with one worker. All others
are dealt out test by test, in the order that pytest-django gives them."""

_held = ExitStack()


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Before the settings are read."""
    if os.environ.get("PYTEST_XDIST_WORKER", "gw0") != "gw0" and os.environ.get("REDIS_URL"):
        os.environ["REDIS_URL"] = _held.enter_context(valkey())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent.name in SHARING or item.path.name == "test_serve.py":
            item.add_marker(pytest.mark.xdist_group(item.path.name))


def pytest_unconfigure() -> None:
    _held.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What a test logged may hold half a surrogate, which no report carries to another process."""
    report = yield
    report.sections = [
        (name, text.encode(errors="backslashreplace").decode()) for name, text in report.sections
    ]
    return report
