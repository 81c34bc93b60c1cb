"""The operator's pages: they open, keep the rules, and show no secret."""

from __future__ import annotations

import pytest
from django.test import Client

from workspaces.actions import create_token
from workspaces.models import AuditEntry, Membership, User


@pytest.fixture
def operator_client(db):
    operator = User.objects.create_superuser("op@example.com", "Op-secret-123")
    client = Client()
    client.force_login(operator, backend="django.contrib.auth.backends.ModelBackend")
    return client


def test_every_page_opens_and_shows_no_digest(operator_client, acme, alice, bob):
    token, text = create_token(acme, bob, "Laptop")
    membership = Membership.objects.get(user=bob)
    for page in [
        "",
        "workspaces/user/",
        "workspaces/user/add/",
        f"workspaces/user/{bob.pk}/change/",
        "workspaces/workspace/",
        "workspaces/workspace/add/",
        f"workspaces/workspace/{acme.pk}/change/",
        "workspaces/membership/",
        "workspaces/membership/add/",
        f"workspaces/membership/{membership.pk}/change/",
    ]:
        answer = operator_client.get(f"/admin/{page}")
        assert answer.status_code == 200
        assert token.digest not in answer.content.decode()
        assert text not in answer.content.decode()
    assert operator_client.get("/admin/workspaces/apitoken/").status_code == 404


def test_members_who_are_no_operators_are_kept_out(alice_client):
    assert alice_client.get("/admin/workspaces/user/").status_code == 302


def test_a_person_is_made_with_an_address_in_lower_case(operator_client, alice):
    sent = {"email": "New@Example.com", "name": "New", "usable_password": "false"}
    assert operator_client.post("/admin/workspaces/user/add/", sent).status_code == 302
    assert User.objects.filter(email="new@example.com").count() == 1
    taken = {"email": "ALICE@example.com", "usable_password": "false"}
    answer = operator_client.post("/admin/workspaces/user/add/", taken)
    assert "Somebody has this email address already." in answer.content.decode()


def test_memberships_are_audited_and_keep_the_last_admin(operator_client, acme, alice, bob):
    mine = Membership.objects.get(user=alice)
    url = f"/admin/workspaces/membership/{mine.pk}/"
    answer = operator_client.post(f"{url}change/", {"role": "member"})
    assert "This is the last admin." in answer.content.decode()
    assert operator_client.post(f"{url}delete/", {"post": "yes"}).status_code == 403
    his = Membership.objects.get(user=bob)
    operator_client.post(f"/admin/workspaces/membership/{his.pk}/change/", {"role": "admin"})
    assert operator_client.post(f"{url}delete/", {"post": "yes"}).status_code == 302
    dora = User.objects.create_user("dora@example.com")
    sent = {"workspace": acme.pk, "user": dora.pk, "role": "member"}
    assert operator_client.post("/admin/workspaces/membership/add/", sent).status_code == 302
    assert set(AuditEntry.objects.values_list("action", "user__email")) == {
        ("role changed", "op@example.com"),
        ("member removed", "op@example.com"),
        ("member added", "op@example.com"),
    }
