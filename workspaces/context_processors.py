"""What the shell of every page needs: the member and the workspaces to switch between."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from workspaces.access import is_signed_in
from workspaces.queries import workspaces_of


def shell(request: HttpRequest) -> dict[str, Any]:
    """`member` and `workspace` where a view found one; `nav_workspaces`, read when used."""
    context: dict[str, Any] = {}
    member = getattr(request, "member", None)
    if member is not None:
        context |= {"member": member, "workspace": member.workspace}
    user = getattr(request, "user", None)
    if is_signed_in(user):
        person = user
        context["nav_workspaces"] = SimpleLazyObject(lambda: list(workspaces_of(person)))
    return context
