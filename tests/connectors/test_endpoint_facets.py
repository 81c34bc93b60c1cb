"""What a facet counts goes to the overview and to nobody's model."""

from __future__ import annotations

import pytest
from django.utils import timezone

from connectors.protocol.identifiers import FACETS
from overview.models import StoredFacet, digest_of
from tests.connectors.outside import install, text
from tests.servers.raw import raw_server

TITLE = "Drafts that only the overview names"


@pytest.mark.requirement("F-108")
def test_no_title_and_no_count_reaches_an_outside_agent_by_the_host(agent, acme, bob_client):
    with raw_server(capabilities={"tools": {}, "resources": {}}) as server:
        server.on("tools/call", text("done"))
        capabilities = {"tools": {}, "resources": {}, "extensions": {FACETS: {}}}
        crm = install(
            acme,
            "crm",
            server.url,
            listings={"tools": ["lookup"]},
            capabilities=capabilities,
            advertises_facets=True,
            epoch=1,
        )
        StoredFacet.objects.create(
            connector=crm,
            name="drafts",
            name_digest=digest_of("drafts"),
            uri="crm://facets/drafts",
            title=TITLE,
            level="warning",
            position=0,
            count="424242",
            read_at=timezone.now(),
            epoch=1,
        )
        said = [
            agent.post("server/discover").text,
            agent.post("tools/list").text,
            agent.post("tools/call", {"name": "crm__lookup", "arguments": {}}).text,
            agent.talk(_instructions, "legacy"),
        ]
        asked = [str(request.message) for request in server.requests]
    assert "done" in said[2]
    for words in [*said, *asked]:
        assert TITLE not in words
        assert "424242" not in words
    # It is there to be seen: by members, on the page.
    assert TITLE in bob_client.get("/w/acme/").content.decode()


async def _instructions(client):
    return str(client.instructions)
