"""Reads about people and workspaces."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta

from django.db.models import F, Q, QuerySet

from workspaces.access import Member
from workspaces.models import ApiToken, AuditEntry, Membership, Role, User, Workspace

TOKEN_SHOWN_SECONDS = 60
"""How long the form that made a token is answered with it again: a second click, or its page
loaded again at once."""


def workspaces_of(user: User) -> QuerySet[Workspace]:
    """The person's workspaces, by name."""
    return Workspace.objects.filter(memberships__user=user).order_by("name", "slug")


def all_workspaces() -> QuerySet[Workspace]:
    """For the operator only: every workspace, by its slug."""
    return Workspace.objects.order_by("slug")


def workspace_at(slug: str) -> Workspace | None:
    """For the operator only: pages and clients go through `workspaces.access`."""
    return Workspace.objects.filter(slug=slug).first()


def memberships_with_workspaces(user: User) -> QuerySet[Membership]:
    """The person's memberships, by the name of the workspace."""
    return user.memberships.select_related("workspace").order_by(
        "workspace__name", "workspace__slug"
    )


def person_at(email: str) -> User | None:
    """The person with this address, whatever its letter case; also one who may not sign in."""
    return User.objects.filter(email__iexact=email.strip()).first()


def memberships_of(workspace: Workspace) -> QuerySet[Membership]:
    """Admins first, then by name."""
    return workspace.memberships.select_related("user").order_by(
        "role", "user__name", "user__email"
    )


def membership_of(workspace: Workspace, user_id: int) -> Membership | None:
    return memberships_of(workspace).filter(user_id=user_id).first()


def is_last_admin(membership: Membership) -> bool:
    """Whether the workspace would have no admin without this one. For showing, not for deciding:
    actions decide, under a lock."""
    return admins_of(membership.workspace) == [membership.user] and membership.role == Role.ADMIN


def admins_of(workspace: Workspace) -> list[User]:
    """Who may change the workspace, by name."""
    return list(
        User.objects.filter(
            memberships__workspace=workspace, memberships__role=Role.ADMIN, is_active=True
        ).order_by("name", "email")
    )


def tokens_of(workspace: Workspace, user: User) -> QuerySet[ApiToken]:
    """The person's own tokens in this workspace, newest first."""
    return ApiToken.objects.filter(workspace=workspace, user=user).order_by("-created_at")


def tokens_in(workspace: Workspace) -> QuerySet[ApiToken]:
    """Everybody's tokens that are not revoked, newest first."""
    tokens = ApiToken.objects.filter(workspace=workspace, revoked_at__isnull=True)
    return tokens.select_related("user", "workspace").order_by("-pk")


def tokens_seen_by(member: Member) -> QuerySet[ApiToken]:
    """Tokens that are not revoked, newest first: a member's own, for an admin everybody's."""
    tokens = tokens_in(member.workspace)
    return tokens if member.is_admin else tokens.filter(user=member.user)


def has_token_named(workspace: Workspace, user: User, name: str, now: datetime) -> bool:
    """Whether the person already has a token of this name here that works."""
    return (
        tokens_of(workspace, user)
        .filter(Q(expires_at__isnull=True) | Q(expires_at__gt=now))
        .filter(name=name, revoked_at__isnull=True)
        .exists()
    )


def token_just_made(text: str, member: Member, now: datetime) -> ApiToken | None:
    """The member's token of this text, if it works and its page may still be shown."""
    made_since = now - timedelta(seconds=TOKEN_SHOWN_SECONDS)
    found = live_tokens(digest_of_token(text), member.workspace.slug, now)
    return found.filter(user=member.user, created_at__gt=made_since).first()


def audit_of(workspace: Workspace) -> QuerySet[AuditEntry]:
    """Newest first."""
    entries = AuditEntry.objects.filter(workspace=workspace).select_related("user")
    return entries.order_by("-at", "-pk")


def digest_of_token(token: str) -> str:
    """What is stored of a token. It holds 256 random bits, so a plain hash is enough."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def live_token(token: str, slug: str, now: datetime) -> ApiToken | None:
    """The token, when it is valid now for that workspace and its person is still a member."""
    found = live_tokens(digest_of_token(token), slug, now)
    return found.select_related("workspace", "user").first()


def live_tokens(digest: str, slug: str, now: datetime) -> QuerySet[ApiToken]:
    """The token of that digest, under the conditions of `live_token`: one or none.

    The look-up is by digest, so its time says nothing about how much of a guess was right.
    """
    return ApiToken.objects.filter(
        Q(expires_at__isnull=True) | Q(expires_at__gt=now),
        digest=digest,
        revoked_at__isnull=True,
        workspace__slug=slug,
        user__is_active=True,
        workspace__memberships__user=F("user"),
    )
