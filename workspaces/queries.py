"""Reads about people and workspaces."""

from __future__ import annotations

import hashlib
from datetime import datetime

from django.db.models import F, Q, QuerySet

from workspaces.models import ApiToken, AuditEntry, Membership, Role, User, Workspace


def workspaces_of(user: User) -> QuerySet[Workspace]:
    """The person's workspaces, by name."""
    return Workspace.objects.filter(memberships__user=user).order_by("name", "slug")


def memberships_of(workspace: Workspace) -> QuerySet[Membership]:
    """Admins first, then by name."""
    return workspace.memberships.select_related("user").order_by(
        "role", "user__name", "user__email"
    )


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


def audit_of(workspace: Workspace) -> QuerySet[AuditEntry]:
    """Newest first."""
    return AuditEntry.objects.filter(workspace=workspace).select_related("user").order_by("-at")


def digest_of_token(token: str) -> str:
    """What is stored of a token. It holds 256 random bits, so a plain hash is enough."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def live_token(token: str, slug: str, now: datetime) -> ApiToken | None:
    """The token, when it is valid now for that workspace and its person is still a member.

    The look-up is by digest, so its time says nothing about how much of a guess was right.
    """
    return (
        ApiToken.objects.select_related("workspace", "user")
        .filter(
            Q(expires_at__isnull=True) | Q(expires_at__gt=now),
            digest=digest_of_token(token),
            revoked_at__isnull=True,
            workspace__slug=slug,
            user__is_active=True,
            workspace__memberships__user=F("user"),
        )
        .first()
    )
