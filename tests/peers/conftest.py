"""The endpoint's site, with the specification's two servers connected to Acme."""

from __future__ import annotations

import pytest

from connectors.models import Connector
from overview.refresh import refresh
from tests.connectors.conftest import _site, agent, queued, site
from tests.connectors.outside import connected_examples

__all__ = ["_site", "agent", "queued", "site"]


@pytest.fixture
def workspace(agent, acme, alice):
    """Acme's endpoint; its overview has been looked at, which lists the servers' resources."""
    with connected_examples(acme, by=alice):
        refresh(list(Connector.objects.values_list("pk", flat=True)))
        yield agent
