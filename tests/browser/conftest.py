"""Chromium as Debian packages it, the overview without a server, and the real stack."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from playwright.sync_api import expect

from tests.browser.chromium import ARGUMENTS, CHROMIUM
from tests.browser.place import Place
from tests.browser.site import Site, errors_of
from tests.browser.stack import running_stack

# What is waited for comes at once on a machine at rest. Nothing is told by how long it took.
expect.set_options(timeout=20_000)


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


@pytest.fixture(scope="package")
def stack(tmp_path_factory):
    with running_stack(tmp_path_factory.mktemp("stack")) as running:
        yield running


@pytest.fixture
def place(stack, browser):
    """A workspace of the test's own on the real stack. No page of it may complain of anything."""
    with ExitStack() as held:
        place = Place(stack, browser, held)
        yield place
        assert place.complaints == []
