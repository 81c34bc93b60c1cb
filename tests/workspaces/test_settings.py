"""The list of workspaces, general settings, appearance, audit."""

from __future__ import annotations

import pytest
from django.test import Client

from workspaces.actions import create_workspace, record_act, set_membership
from workspaces.models import AuditEntry, User, Workspace


def test_who_is_in_no_workspace_reads_how_to_make_one(db):
    user = User.objects.create_user("o'neil$(id)@example.com")
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    html = client.get("/workspaces/").content.decode()
    # Quoted for the shell, then for the page.
    assert "--admin &#x27;o&#x27;&quot;&#x27;&quot;&#x27;neil$(id)@example.com&#x27;" in html


def test_the_list_holds_ones_own_workspaces_and_roles(alice, alice_client, other):
    create_workspace("beta", "Beta", admin=alice)
    html = alice_client.get("/workspaces/").content.decode()
    assert 'href="/w/acme/"' in html
    assert 'href="/w/beta/"' in html
    assert "Other" not in html


@pytest.mark.parametrize("number", [1, 2, 8])
def test_the_switcher_lists_every_workspace_from_two_up(alice, alice_client, number):
    for index in range(1, number):
        create_workspace(f"more-{index}", f"More {index}", admin=alice)
    html = alice_client.get("/w/acme/settings/").content.decode()
    assert ('popovertarget="switcher"' in html) == (number > 1)
    assert html.count('aria-current="true"') == (1 if number > 1 else 0)
    assert ("Filter workspaces" in html) == (number >= 8)


def test_an_admin_renames_the_workspace_and_offers_resource_tools(alice_client, acme):
    sent = {"name": "  Acme \n\u3000 & Söhne ", "has_resource_tools": "on"}
    for _ in range(2):
        answer = alice_client.post("/w/acme/settings/", sent, follow=True)
        assert "Settings are saved." in answer.content.decode()
    acme.refresh_from_db()
    assert (acme.name, acme.has_resource_tools) == ("Acme & Söhne", True)
    assert sorted(AuditEntry.objects.values_list("action", "subject")) == [
        ("resource tools", "on"),
        ("workspace renamed", "Acme & Söhne"),
    ]


@pytest.mark.parametrize("name", ["", "   ", "\u200b\u202e", "\x00", "x" * 101])
def test_a_name_that_nobody_could_read_is_refused(alice_client, name):
    html = alice_client.post("/w/acme/settings/", {"name": name}).content.decode()
    assert '<a href="#id_name">' in html
    assert 'aria-invalid="true"' in html
    assert Workspace.objects.get(slug="acme").name == "Acme"


def test_a_member_reads_the_settings(bob_client):
    html = bob_client.get("/w/acme/settings/").content.decode()
    assert "Not offered" in html
    assert 'name="name"' not in html


@pytest.mark.parametrize("theme", ["light", "dark", "system"])
def test_the_appearance_is_in_the_first_byte_of_the_next_page(bob_client, theme):
    answer = bob_client.post("/w/acme/settings/appearance/", {"theme": theme}, follow=True)
    cookie = bob_client.cookies["theme"]
    assert (cookie["samesite"], bool(cookie["httponly"])) == ("Lax", True)
    html = answer.content.decode()
    assert f'data-theme="{theme}"' in html
    assert f'value="{theme}" id="id_theme_' in html


@pytest.mark.parametrize("theme", ["", "neon", '"><script>'])
def test_an_appearance_that_does_not_exist_is_not_kept(bob_client, theme):
    bob_client.post("/w/acme/settings/appearance/", {"theme": theme})
    assert "theme" not in bob_client.cookies
    bob_client.cookies["theme"] = theme
    html = bob_client.get("/w/acme/settings/appearance/").content.decode()
    assert "<script>" not in html.replace('<script src="', "")


def test_the_audit_tells_who_did_what_newest_first_in_pages(acme, alice, bob, alice_client):
    set_membership(acme, bob, "admin", by=alice)
    for number in range(55):
        record_act(acme, "tested", f"thing {number}", by=None)
    first = alice_client.get("/w/acme/audit/").content.decode()
    assert first.index("thing 54") < first.index("thing 53")
    assert "thing 4<" not in first
    assert "Page 1 of 2" in first
    last = alice_client.get("/w/acme/audit/?page=2").content.decode()
    assert "Role changed" in last
    assert "bob@example.com: Admin" in last
    assert "<bdi>Alice</bdi>" in last


@pytest.mark.parametrize("page", ["0", "-1", "999", "x", "", "9" * 400])
def test_a_page_of_the_audit_that_does_not_exist_is_the_nearest_one(acme, alice_client, page):
    assert alice_client.get("/w/acme/audit/", {"page": page}).status_code == 200
