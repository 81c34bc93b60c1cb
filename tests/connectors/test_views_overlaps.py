"""The ambiguity desk's page: who sees it, what it says, and settling an overlap."""

from __future__ import annotations

import pytest
from django.test import Client

from connectors.models import Connector
from tests.connectors.outside import install
from tests.connectors.test_desk import refused_call
from workspaces.models import AuditEntry

pytestmark = pytest.mark.django_db
URL = "/w/acme/overlaps/"
URI = "crm://contacts/contact"


@pytest.fixture(autouse=True)
def crm(acme):
    return install(acme, "crm", name="CRM", listings={"templates": ["crm://contacts/{id}"]})


@pytest.fixture
def legacy(acme):
    listed = {"templates": ["crm://contacts/{contact}"]}
    return install(acme, "legacy", name="Legacy CRM", listings=listed)


def text(answer):
    assert answer.status_code == 200, answer.status_code
    return answer.content.decode()


def disconnect(client, connector="legacy", uri=URI):
    return client.post(URL, {"connector": connector, "uri": uri}, follow=True)


@pytest.mark.requirement("R-163")
def test_strangers_get_what_a_missing_workspace_gives(carol_client, legacy):
    for answer in (carol_client.get(URL), disconnect(carol_client)):
        assert answer.status_code == 404
    assert carol_client.get("/w/nowhere/overlaps/").status_code == 404
    assert Connector.objects.filter(asked_at=None).count() == 0


def test_who_is_signed_out_signs_in_first():
    assert Client().get(URL)["Location"].startswith("/sign-in/")


def test_a_member_reads_and_changes_nothing(bob_client, legacy):
    page = text(bob_client.get(URL))
    assert "Legacy CRM" in page
    assert "Disconnect Legacy CRM" not in page
    assert disconnect(bob_client).status_code == 403
    assert Connector.objects.filter(asked_at=None).count() == 0


def test_without_overlaps_the_page_says_so(bob_client):
    assert "No overlaps. No URI fits the templates of two connectors." in text(bob_client.get(URL))


def test_an_admin_sees_both_sides_with_their_effect(alice_client, legacy):
    page = text(alice_client.get(URL))
    assert "crm://contacts/… will be served by CRM." in page
    assert "crm://contacts/… will be served by Legacy CRM." in page
    assert '<mark class="mark">{contact}</mark>' in page
    assert "/w/acme/connectors/legacy/remove/" in page


@pytest.mark.requirement("R-068")
def test_disconnecting_one_settles_it_and_says_who_serves_it_now(alice_client, alice, legacy):
    answer = disconnect(alice_client)
    assert answer.redirect_chain == [(URL, 302)]
    page = text(answer)
    assert "Legacy CRM is disconnected. crm://contacts/… is now served by CRM." in page
    assert "No overlaps." in page
    legacy.refresh_from_db()
    assert (legacy.asked_at, legacy.disconnected_by) == (None, alice)
    assert AuditEntry.objects.get(action="connector disconnected").user == alice


@pytest.mark.parametrize(
    ("connector", "uri"), [("legacy", "mail://1"), ("nobody", URI), ("legacy", ""), ("other", URI)]
)
def test_only_what_overlaps_is_disconnected_here(alice_client, acme, legacy, connector, uri):
    install(acme, "other", listings={"templates": ["other://{id}"]})
    assert "Nothing was changed" in text(disconnect(alice_client, connector, uri))
    assert Connector.objects.filter(asked_at=None).count() == 0


def test_a_second_click_finds_it_settled(alice_client, legacy):
    disconnect(alice_client)
    assert "Nothing was changed" in text(disconnect(alice_client))


def test_a_connector_of_another_workspace_is_out_of_reach(alice_client, other, legacy):
    theirs = install(other, "theirs", listings={"templates": ["crm://contacts/{id}"]})
    assert "Nothing was changed" in text(disconnect(alice_client, "theirs"))
    theirs.refresh_from_db()
    assert theirs.asked_at is not None


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("crm://contacts/42", "CRM serves it."),
        ("mail://1", "It fits no template of a connector."),
        ("files://a", "files:// belongs to the host."),
        ("42", "This is no URI"),
        (" crm://contacts/42 ", "CRM serves it."),
    ],
)
def test_a_uri_is_checked_at_an_address_that_can_be_shared(bob_client, uri, words):
    page = text(bob_client.get(URL, {"uri": uri}))
    assert words in page
    assert f'value="{uri.strip()}"' in page


def test_a_uri_that_two_serve_is_ambiguous(bob_client, legacy):
    page = text(bob_client.get(URL, {"uri": "crm://contacts/42"}))
    assert "CRM and Legacy CRM both serve it: ambiguous." in page


def test_refused_calls_lead_to_their_traces(bob_client, acme, legacy):
    refused_call(acme, "crm://contacts/1")
    page = text(bob_client.get(URL))
    assert "1 call refused in 7 days" in page
    link = page.split("1 call refused")[0].rpartition('href="')[2].split('"')[0]
    assert "mail__send" in text(bob_client.get(link.replace("&amp;", "&")))


HOSTILE = '"><img src=x onerror=alert(1)>\u202e{{ 7 }}'


def test_hostile_text_stays_text(alice_client, acme, crm):
    template = "crm://{+path}/<b>/{id}"
    install(acme, "evil", name=HOSTILE, listings={"templates": [template, "crm://contacts/{+x}"]})
    for query in ({}, {"uri": HOSTILE}):
        page = text(alice_client.get(URL, query))
        assert "<img src=x" not in page
        assert "{{ 7 }}" in page or "{{ 7 }}" not in str(query)
        assert "49" not in page.split("evil")[-1][:50]


def test_the_page_takes_the_same_statements_for_many_connectors(
    bob_client, acme, legacy, django_assert_max_num_queries
):
    text(bob_client.get(URL))
    for number in range(8):
        install(acme, f"c{number}", listings={"templates": ["crm://contacts/{+id}"]})
    text(bob_client.get(URL))
    with django_assert_max_num_queries(15):
        text(bob_client.get(URL))
