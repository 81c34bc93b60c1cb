"""An overlap that two example servers make, from the first refused call to the call that works.

Nothing is stored by hand here: real servers, the real checks and listings, a real client.
"""

from __future__ import annotations

import html

import pytest
from django.utils import timezone

from connectors.models import Connector
from connectors.tasks import check_connector, list_connectors
from examples.crm import Crm, build_server
from tests.connectors.outside import connect, connected_examples, serve, traces, words_of

LIST, DESK = "/w/acme/connectors/", "/w/acme/overlaps/"
URI = "crm://signals/42"


@pytest.fixture
def workspace(agent, acme, alice):
    """The examples, and the CRM that the company has left but not yet disconnected."""
    legacy = build_server(Crm(0)).streamable_http_app()
    with connected_examples(acme, by=alice), serve(legacy) as site:
        yield agent, lambda: connect(acme, "legacy", f"{site}/mcp", by=alice)


def page_of(client, path):
    return html.unescape(client.get(path).content.decode())


def send(agent):
    cited = {"body": "Hello", "citations": [URI]}
    return agent.call("outbound__send_with_citations", cited)


@pytest.mark.requirement("R-068", "R-163", "D8")
def test_the_desk_settles_what_two_examples_both_serve(workspace, alice_client, bob_client):
    agent, connect_legacy = workspace
    assert not send(agent).is_error
    assert "URI templates overlap" not in page_of(alice_client, LIST)

    connect_legacy()
    refused = send(agent)
    assert refused.is_error
    assert f"{URI}: ambiguous" in words_of(refused)
    traces()

    # Seen where admins look for what is wrong with connectors, with what it costs.
    row = page_of(alice_client, LIST)
    assert f'<a href="{DESK}">2 URI templates overlap</a>' in row
    assert "Calls that cite them are refused: 1 in 7 days." in row

    desk = page_of(alice_client, DESK)
    assert "crm://signals/id" in desk
    assert "1 call refused in 7 days" in desk
    # The effect of each choice, before it is made.
    assert desk.count("crm://signals/… will be served by CRM.") == 1
    assert desk.count("crm://signals/… will be served by LEGACY.") == 1
    assert "Disconnect LEGACY" in desk and "Disconnect CRM" in desk
    assert "Disconnect LEGACY" not in page_of(bob_client, DESK)
    both = "CRM and LEGACY both serve it: ambiguous."
    assert both in page_of(bob_client, f"{DESK}?uri={URI}")

    settled = alice_client.post(
        DESK, {"uri": "crm://signals/id", "connector": "legacy"}, follow=True
    )
    said = "LEGACY is disconnected. crm://signals/… is now served by CRM."
    assert said in html.unescape(settled.content.decode())
    assert "No overlaps." in settled.content.decode()
    assert "URI templates overlap" not in page_of(alice_client, LIST)

    sent = send(agent)
    assert not sent.is_error
    assert "Raised a series B of 30 million" in words_of(sent)
    assert "CRM serves it." in page_of(bob_client, f"{DESK}?uri={URI}")


@pytest.mark.requirement("D8")
def test_an_overlap_does_not_depend_on_who_is_up(workspace, alice_client):
    """The one that was left goes down: its claim stays until somebody decides (D-R7)."""
    agent, connect_legacy = workspace
    legacy = connect_legacy()
    Connector.objects.filter(pk=legacy.pk).update(
        url="http://127.0.0.1:9/mcp", check_due_at=timezone.now(), generation=legacy.generation + 9
    )
    check_connector(legacy.pk)
    list_connectors([legacy.pk])
    assert Connector.objects.get(pk=legacy.pk).connection == "failed"
    assert f"{URI}: ambiguous" in words_of(send(agent))
    assert "will be served by LEGACY, which is not ready (Failed)" in page_of(alice_client, DESK)
