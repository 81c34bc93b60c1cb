"""The command line: words for people, one JSON object for scripts, status 1 for errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from workspaces.models import ApiToken, AuditEntry, Membership, User, Workspace
from workspaces.queries import live_token


def _run(capsys, *arguments):
    call_command(*arguments, "--json")
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    return json.loads(out)


def test_a_workspace_is_made_with_its_first_admin(db, capsys):
    made = _run(capsys, "workspace", "create", "acme", "--name", "Acme", "--admin", "A@Example.com")
    assert made == {
        "slug": "acme",
        "name": "Acme",
        "path": "/w/acme/",
        "resource_tools": False,
        "admin": "a@example.com",
    }
    assert Membership.objects.get().role == "admin"
    assert not User.objects.get().has_usable_password()


@pytest.mark.parametrize(
    ("slug", "name", "admin", "words"),
    [
        ("acme", "Again", "alice@example.com", "Slug: Workspace with this Slug already exists."),
        ("Bad Slug", "Bad", "alice@example.com", "Slug: Lower-case letters, digits and hyphens."),
        ("x" * 65, "Bad", "alice@example.com", "Slug: Ensure this value has at most 64"),
        ("beta", "", "alice@example.com", "Name: This field cannot be blank."),
        ("beta", "x" * 101, "alice@example.com", "Name: Ensure this value has at most 100"),
        ("beta", "Beta", "not an address", "Email: Enter a valid email address."),
    ],
)
def test_a_workspace_that_cannot_be_says_why_and_leaves_nothing(alice, slug, name, admin, words):
    with pytest.raises(CommandError) as error:
        call_command("workspace", "create", slug, "--name", name, "--admin", admin)
    assert words in str(error.value)
    assert (Workspace.objects.count(), User.objects.count()) == (1, 1)


@pytest.mark.parametrize(("word", "is_on"), [("on", True), ("off", False)])
def test_resource_tools_are_switched(acme, capsys, word, is_on):
    changed = _run(capsys, "workspace", "set", "acme", "--resource-tools", word)
    assert changed["resource_tools"] is is_on
    acme.refresh_from_db()
    assert (acme.name, acme.has_resource_tools) == ("Acme", is_on)


def test_all_workspaces_are_listed(acme, other, capsys):
    listed = _run(capsys, "workspace", "list")["workspaces"]
    assert [each["slug"] for each in listed] == ["acme", "other"]


def test_a_member_is_added_made_if_needed_and_listed(acme, alice, capsys):
    added = _run(capsys, "member", "add", "acme", "new@example.com", "--role", "member")
    assert added["is_new"] is True
    again = _run(capsys, "member", "add", "acme", "NEW@example.com", "--role", "admin")
    assert (again["is_new"], again["role"]) == (False, "admin")
    listed = _run(capsys, "member", "list", "acme")["members"]
    assert {(each["email"], each["role"]) for each in listed} == {
        ("alice@example.com", "admin"),
        ("new@example.com", "admin"),
    }
    assert set(AuditEntry.objects.values_list("user", flat=True)) == {None}


def test_a_member_is_removed_and_the_last_admin_is_not(acme, alice, bob, capsys):
    assert _run(capsys, "member", "remove", "acme", "bob@example.com")["removed"] is True
    assert _run(capsys, "member", "remove", "acme", "bob@example.com")["removed"] is False
    for act in (["remove", "acme"], ["add", "acme"]):
        with pytest.raises(CommandError, match="is the last admin"):
            call_command("member", *act, "alice@example.com")


def test_a_token_is_made_listed_and_revoked(acme, bob, capsys):
    made = _run(
        capsys,
        *[
            "token",
            "create",
            "acme",
            "bob@example.com",
            "--tool",
            "crm__*",
            "--tool",
            "x",
            "--days",
            "3",
        ],
    )
    assert live_token(made["token"], "acme", timezone.now())
    assert made["allowed_tools"] == ["crm__*", "x"]
    assert made["path"] == "/mcp/acme"
    [listed] = _run(capsys, "token", "list", "acme")["tokens"]
    assert (listed["id"], listed["start"]) == (made["id"], made["token"][:8])
    assert made["token"] not in json.dumps(listed)
    assert _run(capsys, "token", "revoke", "acme", str(made["id"]))["revoked"] is True
    assert live_token(made["token"], "acme", timezone.now()) is None


@pytest.mark.parametrize(
    "arguments",
    [
        "token create acme carol@example.com",
        "token create acme nobody@example.com",
        "token create nowhere bob@example.com",
        "token create acme bob@example.com --days 0",
        "token create acme bob@example.com --days 99999999999",
        "token create acme bob@example.com --name=",
        "token revoke acme 99",
        "member add nowhere bob@example.com",
        "member add acme not-an-address",
        "member remove acme nobody@example.com",
        "workspace set acme",
        "workspace set nowhere --resource-tools on",
        "workspace",
        "sign-in-link nobody@example.com",
        "sign-in-link bob@example.com --origin ftp://x",
    ],
)
def test_an_error_is_one_sentence_and_changes_nothing(acme, bob, carol, arguments):
    with pytest.raises(CommandError):
        call_command(*arguments.split())
    assert ApiToken.objects.count() == 0
    assert Membership.objects.count() == 2


def test_a_token_of_another_workspace_is_not_revoked(acme, bob, other, carol, capsys):
    made = _run(capsys, "token", "create", "other", "carol@example.com")
    with pytest.raises(CommandError):
        call_command("token", "revoke", "acme", str(made["id"]))


def test_a_sign_in_link_signs_in(bob, capsys):
    made = _run(capsys, "sign-in-link", "bob@example.com", "--origin", "https://o.example/")
    assert made["link"] == f"https://o.example{made['path']}"
    assert Client().get(made["path"]).status_code == 302


def test_people_read_words(acme, bob, capsys):
    call_command("token", "create", "acme", "bob@example.com")
    call_command("token", "list", "acme")
    call_command("member", "list", "acme")
    call_command("workspace", "list")
    call_command("sign-in-link", "bob@example.com")
    out = capsys.readouterr().out
    assert "is not shown again." in out
    assert "bob@example.com\tmember" in out
    assert "It works once, for 60 minutes." in out


def test_an_error_ends_with_status_1_and_nothing_on_stdout(tmp_path):
    stores = ("DATABASE_URL", "REDIS_URL")
    env = {name: value for name, value in os.environ.items() if name not in stores}
    env |= {"DEMO": "0", "VAR_DIR": str(tmp_path)}
    manage = [sys.executable, str(settings.BASE_DIR / "manage.py")]
    subprocess.run([*manage, "migrate", "-v0"], env=env, check=True, timeout=60)
    done = subprocess.run(
        [*manage, "member", "list", "nowhere", "--json"],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "There is no workspace “nowhere”." in done.stderr
