"""The endpoint's site, once for all tests, with a clean memory for each; a server to sign in to."""

from __future__ import annotations

import pytest

from tests.connectors.outside import Outside, site_on_a_port, token_for
from tests.servers.authorization import authorization_server


@pytest.fixture(scope="session")
def _site():
    with site_on_a_port() as address:
        yield address


@pytest.fixture
def queued(monkeypatch):
    """What was given to the broker: (task, connector id or ids)."""
    from connectors.tasks import check_connector, list_connectors

    given = []
    for task in (check_connector, list_connectors):
        name = task.name.rpartition(".")[2]
        monkeypatch.setattr(task, "delay", lambda asked, name=name: given.append((name, asked)))
    return given


@pytest.fixture
def site(_site, transactional_db, queued):
    """The address of the site. What its process remembers of other tests is forgotten."""
    from connectors.endpoint import stored
    from connectors.runtime import close_runtime
    from connectors.traces import recorder

    stored.forget()
    yield _site
    assert recorder.flush()
    close_runtime()


@pytest.fixture
def agent(site, acme, alice):
    """Alice's agent in Acme, allowed everything."""
    return Outside(site, acme.slug, token_for(acme, alice))


@pytest.fixture
def server(transactional_db, queued):
    """An authorization server that agrees to everything, before a server with one resource."""
    from connectors.runtime import close_runtime

    with authorization_server() as running:
        yield running
        close_runtime()
