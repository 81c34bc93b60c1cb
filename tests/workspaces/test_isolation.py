"""Who may open and send what, for each address of the workspaces' pages."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from workspaces.actions import create_token
from workspaces.models import ApiToken, Membership, Workspace

PAGES = [
    "members/",
    "members/{bob}/",
    "members/{bob}/remove/",
    "settings/",
    "settings/appearance/",
    "tokens/",
    "tokens/{token}/revoke/",
    "audit/",
]
ADMIN_ONLY_PAGES = ["members/{bob}/", "members/{bob}/remove/", "audit/"]
ADMIN_ONLY_FORMS = ["members/", "members/{bob}/", "members/{bob}/remove/", "settings/"]


@pytest.fixture
def fill(acme, alice, bob):
    token, _ = create_token(acme, bob, "laptop")
    return lambda page: page.format(bob=bob.pk, token=token.pk)


def _same_for_everybody(html: bytes) -> str:
    """Without what differs from one answer to the next: the time, and the form's own token."""
    return re.sub(r'(data-now|name="csrfmiddlewaretoken" value)="[^"]*"', "", html.decode())


@pytest.mark.requirement("F-150")
@pytest.mark.parametrize("method", ["get", "post"])
@pytest.mark.parametrize("page", PAGES)
def test_a_stranger_and_a_workspace_that_does_not_exist_get_the_same_404(
    carol_client, fill, page, method
):
    theirs = getattr(carol_client, method)(f"/w/acme/{fill(page)}")
    nowhere = getattr(carol_client, method)(f"/w/nowhere/{fill(page)}")
    takes_no_form = method == "post" and page == "audit/"
    expected = 405 if takes_no_form else 404
    assert (theirs.status_code, nowhere.status_code) == (expected, expected)
    assert _same_for_everybody(theirs.content) == _same_for_everybody(nowhere.content)
    assert b"Acme" not in theirs.content


@pytest.mark.parametrize("page", PAGES)
def test_who_is_signed_out_is_asked_to_sign_in_first(acme, fill, page):
    answer = Client().get(f"/w/acme/{fill(page)}")
    assert answer.status_code == 302
    assert answer["Location"].startswith("/sign-in/?next=/w/acme/")


@pytest.mark.parametrize("page", PAGES)
def test_an_admin_opens_every_page(alice_client, fill, page):
    assert alice_client.get(f"/w/acme/{fill(page)}").status_code == 200


@pytest.mark.parametrize("page", PAGES)
def test_a_member_reads_all_but_the_admins_pages(bob_client, fill, page):
    expected = 403 if page in ADMIN_ONLY_PAGES else 200
    assert bob_client.get(f"/w/acme/{fill(page)}").status_code == expected


@pytest.mark.parametrize("page", ADMIN_ONLY_FORMS)
def test_a_member_who_sends_an_admins_form_is_told_who_the_admins_are(bob_client, fill, page):
    answer = bob_client.post(f"/w/acme/{fill(page)}", {"name": "Taken", "role": "admin"})
    assert answer.status_code == 403
    assert "You need to be an admin of Acme to do this" in answer.content.decode()
    assert "Alice" in answer.content.decode()
    assert Workspace.objects.get(slug="acme").name == "Acme"
    assert Membership.objects.filter(role="admin").count() == 1


@pytest.mark.parametrize("page", PAGES)
def test_a_form_without_its_csrf_token_changes_nothing(alice, alice_client, fill, page):
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(alice, backend="django.contrib.auth.backends.ModelBackend")
    answer = strict.post(f"/w/acme/{fill(page)}", {"name": "Taken", "role": "admin"})
    # The audit page takes no forms at all, and the check comes first.
    assert answer.status_code == 403
    assert "This form is too old" in answer.content.decode()


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("get", "/sign-out/"),
        ("post", "/workspaces/"),
        ("post", "/w/acme/audit/"),
        ("post", "/sign-in/link/MQ/abc-def/"),
        ("head", "/sign-in/link/MQ/abc-def/"),
        ("delete", "/w/acme/members/"),
        ("put", "/w/acme/tokens/"),
        ("put", "/w/acme/settings/"),
        ("put", "/sign-in/"),
    ],
)
def test_a_method_that_a_page_does_not_take_is_405(alice_client, method, path):
    assert getattr(alice_client, method)(path).status_code == 405


@pytest.mark.parametrize("number", ["999999", "99999999999999999999999999", "0"])
@pytest.mark.parametrize("page", ["members/{}/", "members/{}/remove/", "tokens/{}/revoke/"])
def test_a_number_that_names_nothing_here_is_404(alice_client, page, number):
    assert alice_client.get(f"/w/acme/{page.format(number)}").status_code == 404


def test_ids_of_another_workspace_name_nothing_here(alice_client, other, carol):
    token, _ = create_token(other, carol, "hers")
    for page in (
        f"members/{carol.pk}/",
        f"members/{carol.pk}/remove/",
        f"tokens/{token.pk}/revoke/",
    ):
        assert alice_client.get(f"/w/acme/{page}").status_code == 404
    alice_client.post(f"/w/acme/members/{carol.pk}/", {"role": "member"})
    alice_client.post(f"/w/acme/members/{carol.pk}/remove/")
    alice_client.post(f"/w/acme/tokens/{token.pk}/revoke/")
    assert Membership.objects.get(user=carol).role == "admin"
    assert ApiToken.objects.get().revoked_at is None


HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "</title></script><script>alert(1)</script>",
    "\u202edetrever\u2069\u2066",
    "{{ workspace.slug }}{% now %}",
    "שלום עולם",
    "a" * 100,
]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_text_on_every_page(acme, alice, bob, alice_client, fill, name):
    Workspace.objects.filter(pk=acme.pk).update(name=name)
    for person in (alice, bob):
        person.name = name
        person.save()
    create_token(acme, alice, name, allowed_tools=[name])
    for page in [*PAGES, "../../workspaces/"]:
        answer = alice_client.get(f"/w/acme/{fill(page)}".replace("/w/acme/../..", ""))
        html = answer.content.decode()
        assert answer.status_code == 200
        assert "<img src=x" not in html
        assert "<script>alert" not in html


@pytest.mark.parametrize("page", ["settings/", "tokens/", "members/"])
def test_a_name_of_5000_characters_is_refused_in_words(alice_client, page):
    sent = {"name": "x" * 5000, "email": "x" * 5000, "expiry": "30", "role": "member"}
    answer = alice_client.post(f"/w/acme/{page}", sent)
    assert answer.status_code == 200
    assert "There is a problem" in answer.content.decode()
