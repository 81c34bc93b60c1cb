"""Adding, changing and removing members; the last admin stays."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections

from workspaces.actions import LastAdmin, create_token, remove_member, set_membership
from workspaces.models import ApiToken, AuditEntry, Membership, Role, User


def _role(user):
    membership = Membership.objects.filter(workspace__slug="acme", user=user).first()
    return membership and membership.role


def test_members_see_everybody_and_no_forms(bob_client, alice):
    html = bob_client.get("/w/acme/members/").content.decode()
    assert "alice@example.com" in html
    assert "<form" not in html.split('<main class="page"')[1]
    assert "/members/" not in html.split("<table")[1]


@pytest.mark.parametrize("email", ["dora@example.com", "DORA@example.com"])
def test_an_existing_person_is_added_by_address(alice_client, email):
    dora = User.objects.create_user("dora@example.com", name="Dora")
    answer = alice_client.post("/w/acme/members/", {"email": email, "role": "member"}, follow=True)
    assert answer.redirect_chain == [("/w/acme/members/", 302)]
    assert "<bdi>Dora</bdi> is in this workspace as Member." in answer.content.decode()
    assert _role(dora) == "member"


def test_the_same_form_twice_adds_once(alice_client, bob):
    User.objects.create_user("dora@example.com")
    for _ in range(2):
        answer = alice_client.post(
            "/w/acme/members/", {"email": "dora@example.com", "role": "member"}
        )
        assert answer.status_code == 302
    assert AuditEntry.objects.filter(action="member added").count() == 1


def test_adding_a_member_in_another_role_does_not_change_it_silently(alice_client, bob):
    answer = alice_client.post("/w/acme/members/", {"email": "bob@example.com", "role": "admin"})
    assert "This person is already a member." in answer.content.decode()
    assert _role(bob) == "member"


@pytest.mark.parametrize("email", ["nobody@example.com", "off@example.com", "not an address", ""])
def test_an_address_of_nobody_is_an_error_at_the_field_and_stays(alice_client, email):
    User.objects.create_user("off@example.com", is_active=False)
    html = alice_client.post(
        "/w/acme/members/", {"email": email, "role": "member"}
    ).content.decode()
    assert '<a href="#id_email">' in html
    assert f'value="{email}"' in html or not email
    assert Membership.objects.filter(workspace__slug="acme").count() == 1


def test_an_admin_changes_a_role_and_open_pages_look_again(alice_client, bob):
    answer = alice_client.post(f"/w/acme/members/{bob.pk}/", {"role": "admin"}, follow=True)
    assert "<bdi>Bob</bdi> has the role Admin." in answer.content.decode()
    assert _role(bob) == "admin"
    alice_client.post(f"/w/acme/members/{bob.pk}/", {"role": "admin"})
    assert AuditEntry.objects.filter(action="role changed").count() == 1


@pytest.mark.parametrize("role", ["owner", "", "ADMIN"])
def test_a_role_that_does_not_exist_is_refused(alice_client, bob, role):
    alice_client.post(f"/w/acme/members/{bob.pk}/", {"role": role})
    assert _role(bob) == "member"


@pytest.mark.parametrize(("page", "sent"), [("", {"role": "member"}), ("remove/", {})])
def test_the_last_admin_can_neither_step_down_nor_go(alice_client, alice, page, sent):
    answer = alice_client.post(f"/w/acme/members/{alice.pk}/{page}", sent)
    assert "This is the last admin. Make somebody else an admin first." in answer.content.decode()
    assert _role(alice) == "admin"


def test_an_admin_who_may_not_sign_in_does_not_count(acme, alice, bob):
    set_membership(acme, bob, Role.ADMIN, by=alice)
    User.objects.filter(pk=bob.pk).update(is_active=False)
    with pytest.raises(LastAdmin):
        remove_member(acme, alice, by=alice)
    remove_member(acme, bob, by=alice)


@pytest.mark.django_db(transaction=True)
def test_two_admins_who_demote_each_other_at_once_leave_one(acme, alice, bob):
    set_membership(acme, bob, Role.ADMIN, by=alice)
    start = threading.Barrier(2)

    def demote(user, by):
        try:
            start.wait(timeout=10)
            set_membership(acme, user, Role.MEMBER, by=by)
        except LastAdmin:
            return "refused"
        finally:
            connections.close_all()
        return "done"

    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(demote, bob, alice), pool.submit(demote, alice, bob)]
        assert sorted(each.result(timeout=30) for each in both) == ["done", "refused"]
    assert Membership.objects.filter(role=Role.ADMIN).count() == 1


def test_removing_says_what_is_lost_and_ends_access_and_tokens(acme, alice_client, bob_client, bob):
    token, _ = create_token(acme, bob, "laptop")
    page = alice_client.get(f"/w/acme/members/{bob.pk}/remove/").content.decode()
    assert "1 token of theirs stops working" in page
    answer = alice_client.post(f"/w/acme/members/{bob.pk}/remove/", follow=True)
    assert "<bdi>Bob</bdi> is no longer in this workspace." in answer.content.decode()
    assert _role(bob) is None
    assert ApiToken.objects.get(pk=token.pk).revoked_at is not None
    assert bob_client.get("/w/acme/members/").status_code == 404
    again = alice_client.post(f"/w/acme/members/{bob.pk}/remove/")
    assert again["Location"] == "/w/acme/members/"
    assert AuditEntry.objects.filter(action="member removed").count() == 1


def test_an_admin_who_removes_themself_is_led_out(acme, alice, alice_client, bob):
    set_membership(acme, bob, Role.ADMIN, by=alice)
    answer = alice_client.post(f"/w/acme/members/{alice.pk}/remove/", follow=True)
    assert answer.status_code == 200
    assert "You are in no workspace yet." in answer.content.decode()


def test_a_name_with_markup_is_text_in_the_message(alice_client):
    User.objects.create_user("eve@example.com", name="<b>\u202eEve")
    answer = alice_client.post(
        "/w/acme/members/", {"email": "eve@example.com", "role": "member"}, follow=True
    )
    assert "<bdi>&lt;b&gt;\u202eEve</bdi> is in this workspace" in answer.content.decode()
