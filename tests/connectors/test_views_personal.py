"""People's own connectors: whose they are, how they are added, changed and removed."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from connectors.models import Connector, Secret
from connectors.views.personal import MAX_CONNECTORS
from tests.connectors.outside import install
from tests.connectors.records import MARKER, REFUSED, added, asked, failed, ready, sheet
from workspaces.models import AuditEntry

pytestmark = pytest.mark.django_db
URL = "/account/connectors/"
ACTS = ["connect", "reconnect", "disconnect", "cancel", "check"]


@pytest.fixture(autouse=True)
def _queued(queued):
    return queued


@pytest.fixture
def notes(bob):
    return install(bob, "notes", name="Notes", listings={"tools": ["add", "find"]})


def text(answer, status=200):
    assert answer.status_code == status, answer.status_code
    return answer.content.decode()


def test_who_is_signed_out_signs_in_first(notes):
    for path in ["", "add/", "notes/", "notes/remove/"]:
        assert Client().get(URL + path)["Location"].startswith("/sign-in/")
    for act in ACTS:
        assert Client().post(f"{URL}notes/{act}/")["Location"].startswith("/sign-in/")


def test_everybody_sees_their_own_alone(acme, alice_client, bob_client, notes):
    install(acme, "crm", name="Shared CRM")
    page = text(bob_client.get(URL))
    assert "Notes" in page
    assert "2, as <code>my_notes__…</code>" in page
    assert "Shared CRM" not in page
    assert "Notes" not in text(alice_client.get(URL))


@pytest.mark.parametrize(
    ("made", "button"),
    [
        (ready, None),
        (added, "Connect"),
        (lambda _, **own: failed(None, "mail", **own), "Try again"),
        (lambda _, **own: failed(None, "mail", outcome=REFUSED, **own), "Sign in"),
        (lambda _, **own: asked(added(None, url="https://{x}.example.com/", **own)), "Configure"),
    ],
)
def test_the_act_that_the_words_advise_is_the_one_that_stands_out(bob, bob_client, made, button):
    made(None, owner=bob)
    cards = text(bob_client.get(URL)).partition('<ul class="cards"')[2]
    prominent = re.findall(r'button--primary"[^>]*>([^<]*)', cards)
    assert prominent == ([button] if button else [])


@pytest.mark.parametrize("slug", ["notes", "crm", "nobody"])
def test_other_peoples_and_a_workspaces_connectors_are_not_found(acme, alice_client, notes, slug):
    install(acme, "crm")
    for path in ["", "remove/"]:
        assert alice_client.get(f"{URL}{slug}/{path}").status_code == 404
        assert alice_client.post(f"{URL}{slug}/{path}", sheet()).status_code == 404
    for act in ACTS:
        assert alice_client.post(f"{URL}{slug}/{act}/").status_code == 404
    assert Connector.objects.filter(asked_at=None).count() == 0


def test_a_personal_connector_has_no_page_in_a_workspace(acme, bob, alice_client, notes):
    assert "Notes" not in text(alice_client.get("/w/acme/connectors/"))
    assert alice_client.get("/w/acme/connectors/notes/").status_code == 404
    assert "Notes" not in text(alice_client.get("/w/acme/"))


def test_one_is_added_and_connected_with_its_secrets_stored(bob, bob_client, _queued):
    answer = bob_client.post(
        f"{URL}add/",
        sheet(
            **{
                "name": "My notes",
                "secret-bearer-token": MARKER,
                "headers-0-name": "X-Team",
                "headers-0-value": "blue",
            }
        ),
        follow=True,
    )
    assert "My notes is added and connecting." in text(answer)
    made = Connector.objects.get()
    assert (made.owner, made.workspace, made.slug, made.asked_by) == (bob, None, "my-notes", bob)
    secrets = {(each.kind, each.name): each.value for each in Secret.objects.all()}
    assert secrets == {("bearer", "token"): MARKER, ("header", "X-Team"): "blue"}
    assert MARKER not in text(bob_client.get(f"{URL}my-notes/"))
    assert AuditEntry.objects.count() == 0


def test_two_people_may_use_one_name_and_one_person_may_not(bob, alice_client, bob_client, notes):
    assert alice_client.post(f"{URL}add/", sheet(name="Notes")).status_code == 302
    assert "Another connector is named notes already." in text(
        bob_client.post(f"{URL}add/", sheet(name="notes")), 422
    )
    assert Connector.objects.filter(slug="notes").count() == 2


@pytest.mark.parametrize("url", ["", "ftp://x", "http://10.0.0.1/mcp", "http://u:p@x.example/"])
def test_an_address_that_no_server_has_is_refused(bob_client, url):
    assert bob_client.post(f"{URL}add/", sheet(url=url)).status_code == 422
    assert Connector.objects.count() == 0


def test_nobody_runs_a_program_of_the_host_as_their_own(bob_client, settings):
    settings.STDIO_SERVERS = {"files": ["true"]}
    assert "Program" not in text(bob_client.get(f"{URL}add/"))
    stdio = sheet(transport="stdio", command="files", url="")
    assert bob_client.post(f"{URL}add/", stdio).status_code == 422
    assert Connector.objects.count() == 0


def test_one_person_has_a_bounded_number(bob, bob_client):
    for number in range(MAX_CONNECTORS):
        install(bob, f"c{number}")
    assert "remove one first" in text(bob_client.post(f"{URL}add/", sheet()), 422)


def test_an_empty_form_says_what_is_missing(bob_client):
    assert "Error: " in text(bob_client.post(f"{URL}add/", {}), 422)


def test_connect_and_disconnect_say_what_they_did(bob, bob_client, notes):
    page = text(bob_client.post(f"{URL}notes/disconnect/", follow=True))
    assert "Notes is disconnected." in page
    assert "overview." not in page.partition("Notes is disconnected.")[2][:40]
    notes.refresh_from_db()
    assert notes.asked_at is None
    assert "Notes is connecting." in text(bob_client.post(f"{URL}notes/connect/", follow=True))
    assert "Nothing was changed" in text(bob_client.post(f"{URL}notes/connect/", follow=True))
    assert bob_client.get(f"{URL}notes/connect/").status_code == 405


def test_a_new_token_is_a_new_generation(bob, bob_client):
    kept = added(None, "notes", [("bearer", "token")], owner=bob, url="https://n.example.com/mcp")
    fields = sheet(name="Notes", url=kept.url, **{"secret-bearer-token": "another"})
    assert bob_client.post(f"{URL}notes/", fields).status_code == 302
    assert Secret.objects.get().value == "another"
    kept.refresh_from_db()
    assert kept.generation == 2


def test_removing_one_wants_its_name(bob_client, notes):
    assert "The name is Notes." in text(bob_client.post(f"{URL}notes/remove/", {"typed": "x"}), 422)
    answer = bob_client.post(f"{URL}notes/remove/", {"typed": "Notes"}, follow=True)
    assert "Notes is removed." in text(answer)
    assert Connector.objects.count() == 0


def test_hostile_text_stays_text(bob, bob_client):
    install(bob, "evil", name='"><img src=x>{{ 7 }}', failure="<script>", connection="failed")
    for path in ["", "evil/", "evil/remove/"]:
        page = text(bob_client.get(URL + path))
        assert "<img src=x" not in page
        assert "<script>" not in page
        assert "{{ 7 }}" in page
