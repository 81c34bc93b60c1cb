"""What people can learn, keep and take beyond their rights: members, admins, operators."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from axes.models import AccessAttempt
from django.contrib.auth.models import Permission
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from workspaces.actions import create_token, remove_member, set_membership
from workspaces.guesses import LIMIT
from workspaces.models import Membership, Role, User
from workspaces.queries import digest_of_token, live_token


@pytest.fixture(autouse=True)
def _empty_cache():
    cache.clear()
    yield
    cache.clear()


def add(client, email):
    return client.post("/w/acme/members/", {"email": email, "role": "member"})


# --- Learning who is here ----------------------------------------------------------------------


def test_an_admin_cannot_ask_for_everybodys_address(alice_client, bob, carol):
    for number in range(LIMIT):
        assert "Nobody here has" in add(alice_client, f"guess{number}@x.example").content.decode()
    for email in ("guess@x.example", carol.email):
        assert "Too many addresses" in add(alice_client, email).content.decode()
    assert not Membership.objects.filter(user=carol, workspace__slug="acme").exists()


def test_right_addresses_cost_nothing(alice_client, carol):
    for _ in range(LIMIT + 1):
        assert add(alice_client, carol.email).status_code == 302


def test_a_person_without_an_account_and_one_who_is_switched_off_look_alike(alice_client, carol):
    User.objects.filter(pk=carol.pk).update(is_active=False)
    texts = [add(alice_client, each).content.decode() for each in (carol.email, "no@x.example")]
    words = [text.partition('class="error')[2].partition("</")[0] for text in texts]
    assert words[0] == words[1]


@pytest.mark.parametrize("page", ["/sign-in/", "/admin/login/"])
def test_signing_in_tells_of_no_account(alice, page):
    def tried(email):
        names = {"email": email, "username": email, "password": "wrong-password"}
        return Client().post(page, names)

    known, unknown = tried(alice.email), tried("nobody@example.com")
    assert known.status_code == unknown.status_code == 200
    assert _plain(known, alice.email) == _plain(unknown, "nobody@example.com")


def _plain(answer, email):
    text = answer.content.decode().replace(email, "@")
    return re.sub(r'(data-now|name="csrfmiddlewaretoken" value)="[^"]*"', "", text)


def test_a_password_is_hashed_whether_there_is_an_account_or_not(alice, monkeypatch):
    """Otherwise the time of an answer would tell."""
    hashed = []
    set_password = User.set_password

    def noted(self, raw):
        hashed.append(raw)
        set_password(self, raw)

    monkeypatch.setattr(User, "set_password", noted)
    Client().post("/sign-in/", {"email": "nobody@example.com", "password": "a-guess-1"})
    assert hashed == ["a-guess-1"]


def test_a_stranger_and_nobodys_workspace_take_the_same_statements(acme, carol_client):
    asked = []
    for slug in ("nowhere", "acme", "nowhere"):
        with CaptureQueriesContext(connection) as found:
            assert carol_client.get(f"/w/{slug}/").status_code == 404
        asked.append([each["sql"].replace(f"'{slug}'", "") for each in found])
    assert len(asked[1]) == len(asked[2])
    assert asked[1][-1] == asked[2][-1]


# --- Guessing tokens ---------------------------------------------------------------------------


def test_a_token_is_looked_up_by_its_digest_alone(acme, bob, django_assert_num_queries):
    """The database compares digests, whose beginnings say nothing about the token's."""
    _, text = create_token(acme, bob, "Laptop")
    near = text[:-1] + ("a" if text[-1] != "a" else "b")
    with django_assert_num_queries(1) as asked:
        assert live_token(near, "acme", timezone.now()) is None
    (statement,) = [each["sql"] for each in asked.captured_queries]
    assert digest_of_token(near) in statement
    assert text[:12] not in statement and near not in statement
    assert len(text) >= 43


# --- Taking more -------------------------------------------------------------------------------


@pytest.fixture
def helper(bob):
    """An operator who may change people, and is no superuser."""
    bob.is_staff = True
    bob.save()
    bob.user_permissions.set(
        Permission.objects.filter(
            codename__in=["view_user", "add_user", "change_user", "delete_user"]
        )
    )
    return bob


def changed(client, person, **fields):
    sent = {"email": person.email, "name": person.name, "is_active": "on", **fields}
    answer = client.post(f"/admin/workspaces/user/{person.pk}/change/", sent)
    person.refresh_from_db()
    return answer


def test_an_operator_who_may_change_people_makes_nobody_a_superuser(helper, bob_client, carol):
    assert changed(bob_client, carol, is_staff="on", is_superuser="on").status_code == 302
    assert (carol.is_staff, carol.is_superuser) == (False, False)
    assert changed(bob_client, helper, is_superuser="on", is_staff="on").status_code == 403
    assert not helper.is_superuser
    sent = {"email": "x@x.example", "usable_password": "false", "is_superuser": "on"}
    bob_client.post("/admin/workspaces/user/add/", sent)
    assert not User.objects.filter(is_superuser=True).exists()


def test_an_operator_who_may_change_people_touches_no_other_operator(helper, bob_client, alice):
    alice.is_staff = alice.is_superuser = True
    alice.save()
    assert changed(bob_client, alice, email="taken@x.example").status_code == 403
    page = f"/admin/workspaces/user/{alice.pk}/password/"
    passwords = {"password1": "taken-over-1", "password2": "taken-over-1"}
    assert bob_client.post(page, {**passwords, "usable_password": "true"}).status_code == 403
    bob_client.post(f"/admin/workspaces/user/{alice.pk}/delete/", {"post": "yes"})
    bob_client.post(
        "/admin/workspaces/user/",
        {"action": "delete_selected", "_selected_action": [alice.pk], "post": "yes"},
    )
    alice.refresh_from_db()
    assert alice.email == "alice@example.com"
    assert alice.check_password("Alice-secret-1")


def test_a_superuser_may(alice, alice_client, carol):
    alice.is_staff = alice.is_superuser = True
    alice.save()
    assert changed(alice_client, carol, is_staff="on").status_code == 302
    assert carol.is_staff


@pytest.mark.parametrize(
    ("page", "fields"),
    [
        ("settings/", {"name": "Acme", "slug": "taken", "id": "1", "panel_version": "9"}),
        ("tokens/", {"name": "t", "expiry": "30", "user": "1", "digest": "x", "workspace": "2"}),
        ("members/", {"email": "carol@example.com", "role": "superuser"}),
    ],
)
def test_a_field_that_a_form_does_not_have_changes_nothing(
    acme, alice, alice_client, carol, page, fields
):
    alice_client.post(f"/w/acme/{page}", fields)
    acme.refresh_from_db()
    assert (acme.slug, acme.panel_version) == ("acme", 0)
    assert not acme.tokens.exclude(user=alice).exists()
    assert set(acme.memberships.values_list("role", flat=True)) == {"admin"}


def test_a_persons_own_account_form_gives_no_rights(alice, alice_client):
    passwords = {
        "old_password": "Alice-secret-1",
        "new_password1": "Another-secret-1",
        "new_password2": "Another-secret-1",
    }
    answer = alice_client.post("/account/", {**passwords, "is_staff": "on", "is_superuser": "on"})
    assert answer.status_code == 302
    alice.refresh_from_db()
    assert (alice.is_staff, alice.is_superuser) == (False, False)


# --- Keeping what has ended --------------------------------------------------------------------


def test_a_session_ends_with_the_membership_the_role_the_account_and_the_password(
    acme, alice, bob, bob_client
):
    assert bob_client.get("/w/acme/").status_code == 200
    set_membership(acme, bob, Role.ADMIN, by=alice)
    assert bob_client.get("/w/acme/audit/").status_code == 200
    set_membership(acme, bob, Role.MEMBER, by=alice)
    assert bob_client.get("/w/acme/audit/").status_code == 403
    remove_member(acme, bob, by=alice)
    assert bob_client.get("/w/acme/").status_code == 404
    assert bob_client.get("/workspaces/").status_code == 200
    bob.set_password("changed-elsewhere-1")
    bob.save()
    assert bob_client.get("/workspaces/").status_code == 302


def test_an_account_that_is_switched_off_is_signed_out(bob, bob_client):
    User.objects.filter(pk=bob.pk).update(is_active=False)
    assert bob_client.get("/w/acme/").status_code == 302
    assert bob_client.get("/w/acme/attention.json").status_code == 401


def test_tries_at_passwords_hold_no_password_and_are_forgotten(alice):
    for number in range(3):
        fields = {"email": f"n{number}@x.example", "password": "a-marked-guess"}
        Client().post("/sign-in/", fields)
    rows = list(AccessAttempt.objects.values())
    assert len(rows) == 3
    assert "a-marked-guess" not in str(rows)
    AccessAttempt.objects.update(attempt_time=timezone.now() - timedelta(days=2))
    Client().post("/sign-in/", {"email": "n4@x.example", "password": "a-marked-guess"})
    assert AccessAttempt.objects.count() == 1
