"""Who may see what: people, workspaces, memberships and the tokens of outside agents."""

from __future__ import annotations

import secrets
from base64 import urlsafe_b64encode
from typing import ClassVar

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import PermissionsMixin
from django.core.validators import RegexValidator
from django.db import models
from django.db.models.functions import Lower
from django.utils import timezone
from django.utils.crypto import salted_hmac


class UserManager(BaseUserManager["User"]):
    def create_user(self, email: str, password: str | None = None, **fields: object) -> User:
        user = self.model(email=email.strip().lower(), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **fields: object) -> User:
        return self.create_user(email, password, is_staff=True, is_superuser=True, **fields)

    def get_by_natural_key(self, username: str | None) -> User:
        return self.get(email__iexact=username)


class User(AbstractBaseUser, PermissionsMixin):
    """A person, known by an e-mail address. Addresses differ by more than letter case."""

    email = models.EmailField(unique=True)
    name = models.CharField(max_length=150, blank=True)
    is_staff = models.BooleanField(default=False)
    is_active = models.BooleanField(default=True)
    joined_at = models.DateTimeField(default=timezone.now)

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"
    objects: ClassVar[UserManager] = UserManager()

    class Meta:
        constraints = (models.UniqueConstraint(Lower("email"), name="user_email_any_case"),)

    def __str__(self) -> str:
        return self.name or self.email


class Workspace(models.Model):
    """What a group of people shares: its connectors and the overview of them."""

    slug = models.CharField(
        max_length=64,
        unique=True,
        validators=[
            RegexValidator(r"\A[a-z0-9]+(-[a-z0-9]+)*\Z", "Lower-case letters, digits and hyphens.")
        ],
    )
    name = models.CharField(max_length=100)
    created_at = models.DateTimeField(default=timezone.now)
    # Counts the changes of the panel; a push carries it, so that an old message is known as old.
    panel_version = models.BigIntegerField(default=0)
    # While somebody looks, its counts are read; nobody looking costs its servers nothing.
    watched_until = models.DateTimeField(null=True, db_index=True)
    # list_mcp_resources and read_mcp_resource are offered to outside agents only when asked for.
    has_resource_tools = models.BooleanField(default=False)
    endpoint_used_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.name


class Role(models.TextChoices):
    ADMIN = "admin", "Admin"
    MEMBER = "member", "Member"


class Membership(models.Model):
    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role.choices, default=Role.MEMBER)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["workspace", "user"], name="membership_once"),
        )

    def __str__(self) -> str:
        return f"{self.user_id} in {self.workspace_id}: {self.role}"


TOKEN_PREFIX = "nb_"


def new_token() -> str:
    """A bearer token for an outside agent: 256 random bits behind a prefix that scanners know."""
    return TOKEN_PREFIX + secrets.token_urlsafe(32)


def repeatable_token(once: str, user: User, workspace: Workspace) -> str:
    """A token that is the same for the same form of the same person, so that a form that is sent
    twice can be answered with it twice though it is stored nowhere.

    once: random, of one form; whoever knows it learns nothing without `SECRET_KEY`.
    """
    of = f"{workspace.pk} {user.pk} {once}"
    digest = salted_hmac("workspaces.repeatable_token", of, algorithm="sha256").digest()
    return TOKEN_PREFIX + urlsafe_b64encode(digest).rstrip(b"=").decode()


class ApiToken(models.Model):
    """Lets an outside agent act for one person in one workspace. Only its digest is kept."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="tokens")
    user = models.ForeignKey(User, models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=100)
    # The first characters, to tell tokens apart in a list.
    start = models.CharField(max_length=12)
    digest = models.CharField(max_length=64, unique=True)
    # Globs of tool names that the token may call; null means all.
    allowed_tools = models.JSONField(null=True)
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.start}… {self.name}"


class AuditEntry(models.Model):
    """One line per act that changes who may do what or how a server is reached; kept a year."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="audit")
    user = models.ForeignKey(User, models.SET_NULL, null=True)
    at = models.DateTimeField(default=timezone.now, db_index=True)
    action = models.CharField(max_length=40)
    # What it was done to, in words that outlive the thing: "Mail", "bob@example.com".
    subject = models.CharField(max_length=200)

    class Meta:
        indexes = (models.Index(fields=["workspace", "-at"], name="audit_of_workspace"),)

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M} {self.action} {self.subject}"
