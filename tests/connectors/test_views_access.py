"""Who sees and who changes connectors: all addresses, all four people."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.urls import reverse

from connectors.models import Connector
from connectors.urls import urlpatterns
from tests.browser.house import NO_PAGES, site_names
from tests.connectors.records import MARKER, added, sheet

READS = ["", "add/", "mail/"]
FORMS = ["add/", "mail/configure/", "mail/diagnosis/", "mail/remove/"]
POSTS = [
    f"mail/{act}/" for act in ("connect", "reconnect", "disconnect", "cancel", "check", "sign-in")
]
ALL = sorted({*READS, *FORMS, *POSTS})
ADMIN_WRITES = [path for path in [*FORMS, *POSTS] if path != "mail/check/"]

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def mail(acme):
    return added(acme, secrets=[("bearer", "token")])


def both(client, url):
    """The answers to a read and to a write."""
    return [client.get(url), client.post(url, sheet())]


def text_of(answer):
    """The page without what differs each time that it is asked for."""
    changing = r'data-now="[^"]*"|name="csrfmiddlewaretoken" value="[^"]*"'
    return re.sub(changing, "", answer.content.decode())


@pytest.mark.parametrize("path", ALL)
def test_a_stranger_and_a_missing_workspace_look_the_same(carol_client, path):
    theirs = both(carol_client, f"/w/acme/connectors/{path}")
    missing = both(carol_client, f"/w/nowhere/connectors/{path}")
    assert [each.status_code for each in theirs] == [each.status_code for each in missing]
    assert 200 not in [each.status_code for each in theirs]
    assert 404 in [each.status_code for each in theirs]
    assert [text_of(each) for each in theirs] == [text_of(each) for each in missing]
    assert Connector.objects.get().asked_at is None


@pytest.mark.parametrize("path", ALL)
def test_who_is_signed_out_signs_in_first(path):
    for answer in both(Client(), f"/w/acme/connectors/{path}"):
        assert answer.status_code in (302, 405)
        assert answer.status_code == 405 or answer["Location"].startswith("/sign-in/")


@pytest.mark.parametrize("path", ["mail/", *ADMIN_WRITES[1:], "mail/check/"])
def test_a_connector_of_another_workspace_is_not_found(carol_client, path):
    for answer in both(carol_client, f"/w/other/connectors/{path}"):
        assert answer.status_code in (404, 405)


@pytest.mark.parametrize("path", ADMIN_WRITES)
def test_a_member_changes_nothing_and_reads_who_could(bob_client, alice, path):
    before = Connector.objects.values().get()
    answer = bob_client.post(f"/w/acme/connectors/{path}", sheet())
    assert answer.status_code == 403
    assert "Alice" in answer.content.decode()
    assert Connector.objects.values().get() == before


@pytest.mark.parametrize("path", FORMS)
def test_a_member_sees_no_form(bob_client, path):
    assert bob_client.get(f"/w/acme/connectors/{path}").status_code == 403


@pytest.mark.parametrize("path", POSTS)
def test_what_changes_is_no_link(alice_client, path):
    assert alice_client.get(f"/w/acme/connectors/{path}").status_code == 405
    assert Connector.objects.get().asked_at is None


@pytest.mark.parametrize("path", ["", "mail/"])
def test_what_only_shows_takes_no_posts(alice_client, path):
    assert alice_client.post(f"/w/acme/connectors/{path}").status_code == 405


def test_a_form_from_elsewhere_changes_nothing(alice):
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice, backend="django.contrib.auth.backends.ModelBackend")
    assert client.post("/w/acme/connectors/mail/connect/").status_code == 403
    assert Connector.objects.get().asked_at is None


@pytest.mark.parametrize("path", READS)
def test_no_page_is_kept_by_a_shared_cache(alice_client, path):
    answer = alice_client.get(f"/w/acme/connectors/{path}")
    assert path == "add/" or "private" in answer["Cache-Control"]


def test_every_address_of_connectors_is_among_these():
    known = {f"connectors/{path}".replace("/mail/", "/<slug:connector>/") for path in ALL}
    mine = {
        str(each.pattern) for each in urlpatterns if str(each.pattern).startswith("connectors/")
    }
    assert mine <= known


@pytest.mark.parametrize("path", ["", "mail/", "mail/configure/", "mail/remove/"])
def test_a_stored_secret_is_on_no_page(alice_client, path):
    answer = alice_client.get(f"/w/acme/connectors/{path}")
    assert answer.status_code == 200
    assert MARKER not in answer.content.decode()


def test_the_admin_site_shows_connectors_without_secrets_and_changes_none(alice, alice_client):
    alice.is_staff = alice.is_superuser = True
    alice.save()
    mail = Connector.objects.get()
    assert alice_client.get("/admin/connectors/connector/").status_code == 200
    page = alice_client.get(f"/admin/connectors/connector/{mail.pk}/change/")
    assert page.status_code == 200
    assert MARKER not in page.content.decode()
    assert alice_client.get("/admin/connectors/connector/add/").status_code == 403
    assert alice_client.post(f"/admin/connectors/connector/{mail.pk}/delete/").status_code == 403


def test_who_signs_in_after_a_form_was_sent_too_late_lands_on_a_page(acme, alice, alice_client):
    added(None, owner=alice)
    known = {"slug": "acme", "connector": "mail"}
    landed = {}
    for name, parameters in site_names().items():
        if not known.keys() >= set(parameters):
            continue
        path = reverse(name, kwargs={each: known[each] for each in parameters})
        to_sign_in = Client().post(path)
        if to_sign_in.status_code == 302:
            there = alice_client.get(to_sign_in["Location"])["Location"]
            landed[name] = there
            assert (name, alice_client.get(there).status_code) != (name, 405)
    assert landed["connectors:check"] == "/w/acme/connectors/mail/"
    assert landed["connectors:personal_check"] == "/account/connectors/mail/"
    assert landed["connectors:add"] == "/w/acme/connectors/add/"
    assert landed["connectors:tools"] == "/w/acme/tools/"


def test_no_form_that_is_sent_empty_says_what_any_form_could_say(acme, alice, alice_client):
    added(None, owner=alice)
    known = {"slug": "acme", "connector": "mail", "user_id": alice.pk}
    refused = set()
    for name, parameters in site_names().items():
        if name in NO_PAGES or not known.keys() >= set(parameters):
            continue
        path = reverse(name, kwargs={each: known[each] for each in parameters})
        page = alice_client.get(path).content.decode()
        hidden = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', page)
        html = alice_client.post(path, dict(hidden)).content.decode()
        if "There is a problem" in html:
            refused.add(name)
            assert (name, re.findall(r".*This field is required.*", html)) == (name, [])
    assert {"connectors:add", "connectors:remove", "workspaces:tokens"} <= refused
