"""Listing and calling tools through the endpoint, as outside clients do in both eras."""

from __future__ import annotations

import pytest

from tests.connectors.outside import MODES, Outside, install, text, token_for, tool, words_of
from tests.servers.raw import raw_server


@pytest.mark.parametrize("mode", MODES)
def test_a_tool_is_listed_and_called_under_its_connectors_name(agent, acme, mode):
    with raw_server(capabilities={"tools": {}}) as server:
        server.on("tools/call", text("found"))
        install(acme, "crm", server.url, listings={"tools": ["lookup"]})

        assert agent.names(mode) == ["nb__read_resource", "crm__lookup"]
        result = agent.call("crm__lookup", {"id": "7"}, mode=mode)

    assert (words_of(result), result.is_error) == ("found", False)
    sent = server.seen("tools/call")[0].params
    assert (sent["name"], sent["arguments"]) == ("lookup", {"id": "7"})
