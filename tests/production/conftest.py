"""The whole set of processes on real services, with a workspace and people, once for all tests."""

from __future__ import annotations

import pytest

from tests.production.agent import Agent
from tests.production.site import Site
from tests.services import services
from tests.stack import Stack

FRESH_SECONDS = 3
READ_SECONDS = 1
LISTING_SECONDS = 5
BUDGET = 20


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    with (
        services() as variables,
        Stack(
            tmp_path_factory.mktemp("stack"),
            variables,
            # Two clocks: what both queue must happen once.
            beats=2,
            FACET_FRESH_SECONDS=str(FRESH_SECONDS),
            FACET_READ_TIMEOUT_SECONDS=str(READ_SECONDS),
            FACET_LISTING_SECONDS=str(LISTING_SECONDS),
            RESOURCE_BUDGET=f"{BUDGET}/day",
            RESOURCE_BUDGET_BURST=str(BUDGET),
            METRICS_TOKEN="scrape-me",
        ) as stack,
    ):
        yield Site(stack)


@pytest.fixture(scope="session")
def agent(site):
    return Agent(site.stack)
