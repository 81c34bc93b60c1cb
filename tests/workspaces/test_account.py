"""The account page: a person sets the password that they sign in with."""

from __future__ import annotations

import pytest
from django.test import Client

pytestmark = pytest.mark.django_db
NEW = {"new_password1": "a-long-new-secret", "new_password2": "a-long-new-secret"}


def test_somebody_who_came_by_a_link_sets_a_password_and_signs_in_with_it(bob, bob_client):
    bob.set_unusable_password()
    bob.save()
    bob_client.force_login(bob, backend="django.contrib.auth.backends.ModelBackend")
    page = bob_client.get("/account/").content.decode()
    assert "Set a password" in page
    assert "old_password" not in page
    answer = bob_client.post("/account/", NEW, follow=True)
    assert b"Your password is saved." in answer.content
    other = Client()
    other.post("/sign-in/", {"email": bob.email, "password": NEW["new_password1"]})
    assert other.get("/account/").status_code == 200


def test_a_change_needs_the_old_password_and_signs_other_browsers_out(bob, bob_client):
    other = Client()
    other.force_login(bob, backend="django.contrib.auth.backends.ModelBackend")
    refused = bob_client.post("/account/", {**NEW, "old_password": "wrong"})
    assert b"There is a problem" in refused.content
    assert NEW["new_password1"] not in refused.content.decode()
    bob_client.post("/account/", {**NEW, "old_password": "Bob-secret-1"})
    assert bob_client.get("/account/").status_code == 200
    assert other.get("/account/").status_code == 302


def test_a_weak_password_is_refused_in_words(bob_client):
    weak = {"old_password": "Bob-secret-1", "new_password1": "123", "new_password2": "123"}
    assert b"too short" in bob_client.post("/account/", weak).content


def test_signed_out_it_leads_to_sign_in(client):
    assert client.get("/account/").url == "/sign-in/?next=/account/"
