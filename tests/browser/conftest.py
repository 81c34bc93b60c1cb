"""Chromium as Debian packages it, and the overview without a server."""

from __future__ import annotations

import os
import shutil

import pytest

from tests.browser.site import Site, errors_of

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args):
    return {**browser_type_launch_args, "executable_path": CHROMIUM, "args": ARGUMENTS}


@pytest.fixture
def errors(page):
    """Everything that the page complained about; a test that uses the page must leave it empty."""
    found = errors_of(page)
    yield found
    assert found == []


@pytest.fixture
def site(context, errors):
    return Site(context)
