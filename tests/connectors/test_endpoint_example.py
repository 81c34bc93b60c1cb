"""The specification's two servers through the endpoint: a message that cites CRM records.

Nothing is stored by hand here: real servers, the real checks and listings, a real client.
"""

from __future__ import annotations

import pytest

from connectors.models import Connector
from tests.connectors.outside import MODES, connected_examples, traces, words_of


@pytest.fixture
def workspace(agent, acme, alice):
    """Acme's endpoint, with both examples connected."""
    with connected_examples(acme, by=alice):
        yield agent


@pytest.mark.requirement("R-130", "R-135", "R-149", "R-160", "F-003")
@pytest.mark.parametrize("mode", MODES)
def test_a_message_cites_records_that_its_server_never_asked_for(workspace, mode):
    revisions = dict(Connector.objects.values_list("slug", "revision"))
    assert revisions == {"crm": "2026-07-28", "outbound": "2025-11-25"}
    assert workspace.names(mode) == [
        "nb__read_resource",
        "crm__find_signals",
        "crm__blocked_tasks",
        "crm__resolve_task",
        "outbound__send_with_citations",
    ]

    found = workspace.call("crm__find_signals", {"company": "Northwind"}, mode=mode)
    uris = [each["uri"] for each in found.structured_content["result"]]
    assert uris == ["crm://signals/42", "crm://signals/43"]
    sent = workspace.call(
        "outbound__send_with_citations", {"body": "Hello", "citations": uris}, mode=mode
    )
    assert not sent.is_error
    assert "Raised a series B of 30 million" in words_of(sent)

    wrong = ["crm://signals/7", "crm://signals/999", "crm://elsewhere/1", "mail://inbox/1"]
    refused = workspace.call(
        "outbound__send_with_citations", {"body": "Hello", "citations": wrong}, mode=mode
    )
    assert refused.is_error
    for reason in [
        "crm://signals/7: observed 900 days ago",
        "crm://signals/999: not_found",
        "crm://elsewhere/1: not_found",
        "mail://inbox/1: scheme_not_declared",
    ]:
        assert reason in words_of(refused)

    [_, first, second] = traces()
    assert [event.code for event in first.events.all()] == ["ok", "ok"]
    assert {event.server_name for event in first.events.all()} == {"CRM"}
    assert (second.resources_read, second.resources_refused, second.outcome) == (1, 3, "tool_error")


def test_an_agent_reads_what_it_cites(workspace):
    result = workspace.call("nb__read_resource", {"uri": "crm://signals/42"})

    assert not result.is_error
    assert "series B" in words_of(result)
