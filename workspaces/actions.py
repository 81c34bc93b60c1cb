"""Changes of people, workspaces, memberships and tokens. Every write starts here."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.db import transaction
from django.db.models import Q
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
from workspaces.queries import digest_of_token, person_at, workspaces_of


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
def update_workspace(
    workspace: Workspace, *, name: str, has_resource_tools: bool, by: User | None
) -> None:
    """Rename a workspace and choose whether outside agents are offered the resource tools.

    Raises: django.core.exceptions.ValidationError for a bad name.
    """
    was = Workspace.objects.select_for_update().get(pk=workspace.pk)
    workspace.name, workspace.has_resource_tools = name, has_resource_tools
    workspace.clean_fields(exclude=["watched_until", "endpoint_used_at"])
    workspace.save(update_fields=["name", "has_resource_tools"])
    if was.name != name:
        record_act(workspace, "workspace renamed", name, by=by)
    if was.has_resource_tools != has_resource_tools:
        record_act(workspace, "resource tools", "on" if has_resource_tools else "off", by=by)


@transaction.atomic
def find_or_make_user(email: str, name: str = "") -> tuple[User, bool]:
    """The person with this address, and whether they had to be made.

    Somebody new has no password; a sign-in link lets them in.
    Raises: django.core.exceptions.ValidationError for a bad address.
    """
    found = person_at(email)
    if found is not None:
        return found, False
    user = User(email=email.strip().lower(), name=name)
    user.set_unusable_password()
    user.full_clean(exclude=["password", "last_login"])
    user.save()
    return user, True


@transaction.atomic
def set_membership(workspace: Workspace, user: User, role: str, *, by: User | None) -> Membership:
    """Make somebody a member with this role, or change their role. Nothing new is no act.

    Raises: LastAdmin when it would leave the workspace without an admin.
    """
    if role != Role.ADMIN:
        _refuse_last_admin(workspace, user)
    membership, made = Membership.objects.get_or_create(
        workspace=workspace, user=user, defaults={"role": role}
    )
    changed = Membership.objects.filter(pk=membership.pk).exclude(role=role).update(role=role)
    membership.role = role
    if made or changed:
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
        record_act(workspace, "member removed", user.email, by=by)
        for token in ApiToken.objects.filter(workspace=workspace, user=user):
            revoke_token(token, by=by)
        access_changed(workspace.pk)


def _refuse_last_admin(workspace: Workspace, user: User) -> None:
    # The locked rows make two admins who demote each other at once take turns. Somebody who may
    # no longer sign in is no admin to count on.
    admins = list(
        Membership.objects.select_for_update(of=("self",))
        .filter(workspace=workspace, role=Role.ADMIN, user__is_active=True)
        .order_by("pk")
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
    by_operator: bool = False,
    text: str = "",
) -> tuple[ApiToken, str]:
    """A token for an outside agent of this person. The text is returned once and not kept.

    text: of `repeatable_token`, where a form may be sent twice.
    Raises: IntegrityError when there is or was a token of this text.
    """
    text = text or new_token()
    token = ApiToken.objects.create(
        workspace=workspace,
        user=user,
        name=name,
        start=text[:8],
        digest=digest_of_token(text),
        allowed_tools=allowed_tools,
        expires_at=expires_at,
    )
    record_act(workspace, "token made", _named(token), by=None if by_operator else user)
    return token, text


@transaction.atomic
def note_token_use(token: ApiToken, now: datetime) -> None:
    """Remember that a token is in use. The first time on a day (UTC) is a line of audit."""
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    mine = ApiToken.objects.filter(pk=token.pk)
    is_first = Q(last_used_at__isnull=True) | Q(last_used_at__lt=today)
    # Of many processes one changes it first.
    if mine.filter(is_first).update(last_used_at=now):
        record_act(token.workspace, "token used", _named(token), by=token.user)
    else:
        mine.update(last_used_at=now)


def _named(token: ApiToken) -> str:
    return f"{token.start}… {token.name} of {token.user.email}"


@transaction.atomic
def revoke_token(token: ApiToken, *, by: User | None) -> None:
    """Stop a token for good. One that was stopped already is no act."""
    living = ApiToken.objects.filter(pk=token.pk, revoked_at__isnull=True)
    if living.update(revoked_at=timezone.now()):
        record_act(token.workspace, "token revoked", _named(token), by=by)


def record_sign_in(user: User, *, is_by_link: bool) -> None:
    """Somebody came in: each of their workspaces may know, above all when it was without a
    password."""
    for workspace in workspaces_of(user):
        action = "signed in by link" if is_by_link else "signed in"
        record_act(workspace, action, user.email, by=user)


def pages_look_again(user: User) -> None:
    """Make a person's open pages look whether they may stay, because a session or account ended."""
    for workspace in workspaces_of(user):
        access_changed(workspace.pk)


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
