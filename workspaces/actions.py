"""Changes of people, workspaces, memberships and tokens. Every write starts here."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from workspaces.models import (
    ApiToken,
    AuditEntry,
    Membership,
    Role,
    User,
    Workspace,
    new_token,
)
from workspaces.push import access_changed
from workspaces.queries import digest_of_token


class LastAdmin(Exception):
    """The last admin of a workspace cannot leave or become a member: somebody has to be able to
    change it."""


def record_act(workspace: Workspace, action: str, subject: str, *, by: User | None) -> None:
    """One line of audit. `subject` is in words and never holds a secret."""
    AuditEntry.objects.create(workspace=workspace, user=by, action=action, subject=subject[:200])


@transaction.atomic
def create_workspace(slug: str, name: str, *, admin: User) -> Workspace:
    """Make a workspace with its first admin.

    Raises: django.core.exceptions.ValidationError for a bad or taken slug.
    """
    workspace = Workspace(slug=slug, name=name)
    workspace.full_clean(exclude=["watched_until", "endpoint_used_at"])
    workspace.save()
    Membership.objects.create(workspace=workspace, user=admin, role=Role.ADMIN)
    record_act(workspace, "workspace created", name, by=admin)
    return workspace


@transaction.atomic
def set_membership(workspace: Workspace, user: User, role: str, *, by: User | None) -> Membership:
    """Make somebody a member with this role, or change their role.

    Raises: LastAdmin when it would leave the workspace without an admin.
    """
    if role != Role.ADMIN:
        _refuse_last_admin(workspace, user)
    membership, made = Membership.objects.update_or_create(
        workspace=workspace, user=user, defaults={"role": role}
    )
    verb = "member added" if made else "role changed"
    record_act(workspace, verb, f"{user.email}: {Role(role).label}", by=by)
    access_changed(workspace.pk)
    return membership


@transaction.atomic
def remove_member(workspace: Workspace, user: User, *, by: User | None) -> None:
    """End somebody's membership; their open pages close and their tokens here stop working.

    Raises: LastAdmin when it would leave the workspace without an admin.
    """
    _refuse_last_admin(workspace, user)
    if Membership.objects.filter(workspace=workspace, user=user).delete()[0]:
        revoke_tokens(ApiToken.objects.filter(workspace=workspace, user=user))
        record_act(workspace, "member removed", user.email, by=by)
        access_changed(workspace.pk)


def _refuse_last_admin(workspace: Workspace, user: User) -> None:
    # The locked rows make two admins who demote each other at once take turns.
    admins = list(
        Membership.objects.select_for_update()
        .filter(workspace=workspace, role=Role.ADMIN)
        .values_list("user_id", flat=True)
    )
    if admins == [user.pk]:
        raise LastAdmin


@transaction.atomic
def create_token(
    workspace: Workspace,
    user: User,
    name: str,
    *,
    allowed_tools: list[str] | None = None,
    expires_at: datetime | None = None,
) -> tuple[ApiToken, str]:
    """A token for an outside agent of this person. The text is returned once and not kept."""
    text = new_token()
    token = ApiToken.objects.create(
        workspace=workspace,
        user=user,
        name=name,
        start=text[:8],
        digest=digest_of_token(text),
        allowed_tools=allowed_tools,
        expires_at=expires_at,
    )
    record_act(workspace, "token made", f"{token.start}… {name}", by=user)
    return token, text


@transaction.atomic
def revoke_token(token: ApiToken, *, by: User) -> None:
    """Stop a token for good."""
    if revoke_tokens(ApiToken.objects.filter(pk=token.pk)):
        record_act(token.workspace, "token revoked", f"{token.start}… {token.name}", by=by)


def revoke_tokens(tokens: QuerySet[ApiToken]) -> int:
    """Revoke those of a queryset that still live; how many there were."""
    return tokens.filter(revoked_at__isnull=True).update(revoked_at=timezone.now())


def keep_watched(workspace: Workspace, *, seconds: int = 75) -> bool:
    """Have a workspace's counts read for a while, because somebody looks; True when nobody did.

    Written at most every half period, so that a thousand open pages write little.
    """
    now = timezone.now()
    until = workspace.watched_until
    if until is not None and until > now + timedelta(seconds=seconds / 2):
        return False
    Workspace.objects.filter(pk=workspace.pk).update(watched_until=now + timedelta(seconds=seconds))
    return until is None or until < now
