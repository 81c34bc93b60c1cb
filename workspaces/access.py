"""The only authorisation: who is a member of what, and who may change it.

Not a member and no such workspace look exactly alike: 404.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest

from workspaces.models import Membership, Role, User, Workspace


@dataclass(frozen=True, slots=True)
class Member:
    """A person in a workspace: what every read and write starts from."""

    user: User
    workspace: Workspace
    role: str

    @property
    def is_admin(self) -> bool:
        return self.role == Role.ADMIN


class AdminNeeded(PermissionDenied):
    """The member is no admin of this workspace. The 403 page says who is."""

    def __init__(self, member: Member) -> None:
        super().__init__(f"You need to be an admin of {member.workspace.name} to do this.")
        self.member = member


def is_signed_in(user: object) -> TypeGuard[User]:
    return isinstance(user, User) and user.is_active


def attempted_address(request: HttpRequest, credentials: dict[str, object] | None = None) -> str:
    """The address that somebody tries to sign in with, for counting wrong passwords.

    One spelling for all that the database finds the same account by, whatever its letter case;
    else each spelling would have its own ten tries.
    """
    given = credentials or request.POST
    address = given.get("username") or given.get("email") or ""
    return str(address).strip().upper().lower()


def member_of(user: AbstractBaseUser | AnonymousUser, slug: str) -> Member | None:
    """The person as a member of that workspace, or None: no such workspace, or not theirs."""
    if not is_signed_in(user):
        return None
    membership = (
        Membership.objects.select_related("workspace")
        .filter(user=user, workspace__slug=slug)
        .first()
    )
    if membership is None:
        return None
    return Member(user, membership.workspace, membership.role)


def workspace_for(request: HttpRequest, slug: str) -> Member:
    """The signed-in person as a member of that workspace.

    Raises: Http404 for a stranger and for a workspace that does not exist alike.
    """
    member = member_of(request.user, slug)
    if member is None:
        raise Http404
    # The shell's navigation is drawn for this workspace; see context_processors.
    request.member = member  # type: ignore[attr-defined]
    return member


def require_admin(request: HttpRequest, slug: str) -> Member:
    """As `workspace_for`, and an admin.

    Raises: Http404; AdminNeeded (403) for a member who is no admin.
    """
    member = workspace_for(request, slug)
    if not member.is_admin:
        raise AdminNeeded(member)
    return member
