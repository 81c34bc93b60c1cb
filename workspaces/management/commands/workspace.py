"""`manage.py workspace create|set|list`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError

from workspaces.actions import create_workspace, find_or_make_user, update_workspace
from workspaces.command_line import Acts, ActsCommand, Report, add_act, workspace_named
from workspaces.models import Workspace
from workspaces.queries import all_workspaces


class Command(ActsCommand):
    help = "Make, change and list workspaces."

    def add_acts(self, acts: Acts) -> None:
        create = add_act(acts, "create", _create, "Make a workspace with its first admin.")
        create.add_argument("slug", help="Its part of the address: lower-case, digits, hyphens.")
        create.add_argument("--name", required=True)
        create.add_argument("--admin", required=True, metavar="EMAIL", help="Made if needed.")
        change = add_act(acts, "set", _set, "Change a workspace.")
        change.add_argument("slug")
        change.add_argument("--name")
        change.add_argument("--resource-tools", choices=["on", "off"])
        add_act(acts, "list", _list, "List all workspaces.")


def _create(slug: str, name: str, admin: str, **_: Any) -> Report:
    user, _is_new = find_or_make_user(admin)
    workspace = create_workspace(slug, name, admin=user)
    words = (
        f"{workspace} is at /w/{workspace.slug}/, with {user.email} as its admin.\n"
        f"A link that signs them in: manage.py sign-in-link {user.email}"
    )
    return Report(words, _data(workspace) | {"admin": user.email})


def _set(slug: str, name: str | None, resource_tools: str | None, **_: Any) -> Report:
    workspace = workspace_named(slug)
    if name is None and resource_tools is None:
        raise CommandError("Say what to change: --name NAME or --resource-tools on|off.")
    is_on = workspace.has_resource_tools if resource_tools is None else resource_tools == "on"
    update_workspace(workspace, name=name or workspace.name, has_resource_tools=is_on, by=None)
    state = "offered to outside clients" if is_on else "not offered"
    return Report(f"{workspace}: resource tools are {state}.", _data(workspace))


def _list(**_: Any) -> Report:
    workspaces = list(all_workspaces())
    lines = [f"{workspace.slug}\t{workspace.name}" for workspace in workspaces]
    words = "\n".join(lines) or "No workspaces yet. `workspace create` makes one."
    return Report(words, {"workspaces": [_data(workspace) for workspace in workspaces]})


def _data(workspace: Workspace) -> dict[str, Any]:
    return {
        "slug": workspace.slug,
        "name": workspace.name,
        "path": f"/w/{workspace.slug}/",
        "resource_tools": workspace.has_resource_tools,
    }
