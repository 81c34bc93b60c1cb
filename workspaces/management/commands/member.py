"""`manage.py member add|remove|list`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError

from workspaces.actions import LastAdmin, find_or_make_user, remove_member, set_membership
from workspaces.command_line import (
    Acts,
    ActsCommand,
    Report,
    add_act,
    person_named,
    workspace_named,
)
from workspaces.models import Membership, Role
from workspaces.queries import membership_of, memberships_of


class Command(ActsCommand):
    help = "Add, remove and list the members of a workspace."

    def add_acts(self, acts: Acts) -> None:
        add = add_act(acts, "add", _add, "Add a member, or change their role.")
        add.add_argument("slug")
        add.add_argument("email", help="The person is made if needed.")
        add.add_argument("--role", choices=Role.values, default=Role.MEMBER.value)
        remove = add_act(acts, "remove", _remove, "Remove a member and revoke their tokens.")
        remove.add_argument("slug")
        remove.add_argument("email")
        add_act(acts, "list", _list, "List the members.").add_argument("slug")


def _add(slug: str, email: str, role: str, **_: Any) -> Report:
    workspace = workspace_named(slug)
    user, is_new = find_or_make_user(email)
    try:
        membership = set_membership(workspace, user, role, by=None)
    except LastAdmin as error:
        raise _last_admin(email) from error
    words = f"{user.email} is in {workspace} as {membership.get_role_display()}."
    if is_new:
        words += f"\nA link that signs them in: manage.py sign-in-link {user.email}"
    return Report(words, {"workspace": slug, **_data(membership), "is_new": is_new})


def _remove(slug: str, email: str, **_: Any) -> Report:
    workspace, user = workspace_named(slug), person_named(email)
    was_member = membership_of(workspace, user.pk) is not None
    try:
        remove_member(workspace, user, by=None)
    except LastAdmin as error:
        raise _last_admin(email) from error
    words = f"{user.email} is not in {workspace}."
    return Report(words, {"workspace": slug, "email": user.email, "removed": was_member})


def _list(slug: str, **_: Any) -> Report:
    memberships = list(memberships_of(workspace_named(slug)))
    lines = [f"{membership.user.email}\t{membership.role}" for membership in memberships]
    members = [_data(membership) for membership in memberships]
    return Report("\n".join(lines), {"workspace": slug, "members": members})


def _data(membership: Membership) -> dict[str, Any]:
    user = membership.user
    return {"email": user.email, "name": user.name, "role": str(membership.role)}


def _last_admin(email: str) -> CommandError:
    return CommandError(f"{email} is the last admin. Make somebody else an admin first.")
