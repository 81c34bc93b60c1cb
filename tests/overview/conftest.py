"""A server with one facet, and sessions that end with the test."""

from __future__ import annotations

import pytest

from connectors.runtime import close_runtime
from tests.overview.factories import entry
from tests.overview.served import FACETED, publish
from tests.servers.raw import raw_server


@pytest.fixture(autouse=True)
def _sessions():
    yield
    close_runtime()


@pytest.fixture
def server(settings):
    settings.FACET_READ_TIMEOUT_SECONDS = 2
    with raw_server(capabilities=FACETED) as server:
        publish(server, entry())
        yield server
