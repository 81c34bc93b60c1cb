"""The budget of resource reads: whose it is, what it covers, and how it fills again."""

from __future__ import annotations

from itertools import count

import pytest
import time_machine

from connectors import budget
from connectors.budget import grant
from tests.connectors.outside import delivered, install, resource, text, tool
from tests.servers.raw import raw_server

_callers = count(1_000_000)


@pytest.fixture
def caller():
    """A connector that has read nothing yet."""
    return next(_callers)


@pytest.fixture(autouse=True)
def _small(settings):
    settings.RESOURCE_BUDGET = "3/day"
    settings.RESOURCE_BUDGET_BURST = 3


@pytest.mark.requirement("R-118", "R-121")
def test_what_the_budget_covers_is_granted_and_the_rest_costs_nothing(caller):
    assert grant(1, caller, 2) == 2
    assert grant(1, caller, 5) == 1
    assert grant(1, caller, 1) == 0


@pytest.mark.requirement("R-119", "R-120", "R-123")
def test_a_budget_belongs_to_one_caller_in_one_workspace(caller):
    assert grant(1, caller, 3) == 3

    assert grant(1, next(_callers), 3) == 3
    assert grant(2, caller, 3) == 3
    assert grant(1, caller, 1) == 0


@pytest.mark.requirement("R-122")
def test_a_spent_budget_fills_again(caller, settings):
    settings.REDIS_URL = ""  # Redis has a clock of its own.
    settings.RESOURCE_BUDGET = "1/second"
    with time_machine.travel(1_900_000_000, tick=False) as now:
        assert grant(1, caller, 4) == 3
        now.shift(1)
        assert grant(1, caller, 1) == 0
        now.shift(6)
        assert grant(1, caller, 4) == 3


@pytest.mark.requirement("R-122")
def test_processes_share_a_budget_in_redis(caller, settings):
    if not settings.REDIS_URL:
        pytest.skip("This run has no Redis.")
    assert grant(1, caller, 3) == 3

    budget._limiter.cache_clear()  # As another process, which remembers nothing.
    assert grant(1, caller, 1) == 0


def test_the_default_allows_a_burst_of_a_thousand(caller, settings):
    settings.RESOURCE_BUDGET, settings.RESOURCE_BUDGET_BURST = "100/second", 1000

    with time_machine.travel(1_900_000_000, tick=False):
        assert grant(1, caller, 1000) == 1000
        assert grant(1, caller, 1) == 0


def test_a_burst_below_the_rate_is_the_rate(caller, settings):
    settings.RESOURCE_BUDGET, settings.RESOURCE_BUDGET_BURST = "5/minute", 1

    assert grant(1, caller, 9) == 5


def test_a_store_out_of_reach_grants_nothing(caller, settings, caplog):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"

    assert grant(1, caller, 1) == 0
    assert "out of reach" in caplog.text


@pytest.mark.requirement("R-118", "R-119", "R-121", "R-123")
def test_reads_past_the_budget_are_not_sent(agent, acme):
    capabilities = {"tools": {}, "resources": {}}
    with raw_server(capabilities=capabilities) as mail, raw_server() as crm:
        mail.on("tools/call", text("sent"))
        crm.on("resources/read", lambda request: resource(request.params["uri"], "x"))
        declared = [tool("send", cites={"to": ["crm"]})]
        install(acme, "mail", mail.url, listings={"tools": declared})
        install(acme, "chat", mail.url, listings={"tools": declared})
        install(acme, "crm", crm.url, listings={"templates": ["crm://signals/{id}"]})
        uris = ["mail://no", "crm://nobody"] + [f"crm://signals/{n}" for n in range(5)]

        def outcomes(name):
            agent.call(f"{name}__send", {"to": uris})
            entries = delivered(mail).values()
            return [entry.get("error", {}).get("code", "ok") for entry in entries]

        refused = ["scheme_not_declared", "not_found"]
        assert outcomes("mail") == [*refused, *["ok"] * 3, *["rate_limited"] * 2]
        assert outcomes("mail") == [*refused, *["rate_limited"] * 5]
        assert crm.count("resources/read") == 3
        assert outcomes("chat") == [*refused, *["ok"] * 3, *["rate_limited"] * 2]
