"""A server with one facet, a worker, spans, and sessions that end with the test."""

from __future__ import annotations

import pytest

from connectors.runtime import close_runtime
from overview.celery import app
from overview.embedded.worker import EmbeddedCelery
from tests.overview.factories import entry
from tests.overview.recorded import recording
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


@pytest.fixture
def worker():
    """It begins with what is queued from now on, and sets logging up anew."""
    app.control.purge()
    worker = EmbeddedCelery(app)
    worker.start()
    yield
    worker.stop()


@pytest.fixture
def recorded():
    with recording() as found:
        yield found
