"""Connectors: our records of MCP servers, what is known of their connections, and tool calls.

A connector's status is never stored. It is derived at read time, by `connectors.status`, from the
facts in here (requirements section 4).
"""

from __future__ import annotations

import uuid

from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone

from connectors.fields import EncryptedField, ExactJSONField
from connectors.status import Connection
from workspaces.models import ApiToken, User, Workspace


class Transport(models.TextChoices):
    HTTP = "http", "Streamable HTTP"
    STDIO = "stdio", "stdio"


class Connector(models.Model):
    """A server that a workspace (or one person) connects to."""

    workspace = models.ForeignKey(
        Workspace, models.CASCADE, null=True, blank=True, related_name="connectors"
    )
    # A personal connector belongs to a person instead, and never appears on an overview.
    owner = models.ForeignKey(User, models.CASCADE, null=True, blank=True, related_name="+")
    slug = models.CharField(
        max_length=40,
        validators=[
            RegexValidator(r"\A[a-z0-9]+(-[a-z0-9]+)*\Z", "Lower-case letters, digits and hyphens.")
        ],
    )
    name = models.CharField(max_length=100)
    transport = models.CharField(max_length=5, choices=Transport.choices, default=Transport.HTTP)
    # May hold {variables} whose values are Secrets of kind "variable".
    url = models.CharField(max_length=2048, blank=True)
    # PEM certificates of authorities to trust besides the usual ones.
    ca_bundle = models.TextField(blank=True, default="", db_default="")
    # stdio: a name out of settings.STDIO_SERVERS, never a command.
    command = models.CharField(max_length=100, blank=True)
    # Settings that the server declared, as of `connectors.declared`.
    required = models.JSONField(default=list, blank=True)
    placements = models.JSONField(default=list, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    # Changes with the address, a credential, or a new Connect: what was said to an older
    # generation is not believed for a newer one.
    generation = models.PositiveIntegerField(default=1)
    # Changes each time the connector leaves ready: counts read before it are not shown after it.
    epoch = models.PositiveIntegerField(default=0)

    # Facts (requirements 4.1).
    asked_at = models.DateTimeField(null=True)
    asked_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    disconnected_at = models.DateTimeField(null=True)
    disconnected_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    sign_in_started_at = models.DateTimeField(null=True)
    sign_in_needed = models.BooleanField(default=False)
    credential_refused_at = models.DateTimeField(null=True)
    first_ready_at = models.DateTimeField(null=True)
    connection = models.CharField(
        max_length=8,
        choices=[(each.value, each.value) for each in Connection],
        default=Connection.IDLE,
    )
    connection_since = models.DateTimeField(null=True)
    # Words for people, and the technical error for who can act on it; never peer secrets.
    failure = models.TextField(blank=True)
    failure_detail = models.TextField(blank=True)
    attempt = models.PositiveIntegerField(default=0)
    check_due_at = models.DateTimeField(null=True, db_index=True)
    check_lease_until = models.DateTimeField(null=True)
    checked_at = models.DateTimeField(null=True)
    called_at = models.DateTimeField(null=True)
    latency_ms = models.PositiveIntegerField(null=True)

    # What the server said of itself when the connection was made.
    revision = models.CharField(max_length=20, blank=True)
    server_name = models.CharField(max_length=200, blank=True)
    server_version = models.CharField(max_length=100, blank=True)
    capabilities = ExactJSONField(null=True)
    discovery = models.TextField(null=True)  # noqa: DJ001  null: the era has no such answer
    advertises_facets = models.BooleanField(default=False)

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=Q(workspace__isnull=True) ^ Q(owner__isnull=True),
                name="connector_of_workspace_or_person",
            ),
            models.UniqueConstraint(fields=["workspace", "slug"], name="connector_slug_workspace"),
            models.UniqueConstraint(fields=["owner", "slug"], name="connector_slug_owner"),
        )

    def __str__(self) -> str:
        return self.name

    @property
    def is_personal(self) -> bool:
        return self.owner_id is not None


class SecretKind(models.TextChoices):
    BEARER = "bearer", "Bearer token"
    HEADER = "header", "Header"
    VARIABLE = "variable", "Part of the address"
    # The name is "client_id@<issuer>" or "client_secret@<issuer>": never for another issuer.
    CLIENT = "client", "OAuth client"


class Secret(models.Model):
    """A value that is sent to a server and shown to nobody. Write-only for people."""

    connector = models.ForeignKey(Connector, models.CASCADE, related_name="secrets")
    kind = models.CharField(max_length=8, choices=SecretKind.choices)
    name = models.CharField(max_length=200)
    value = EncryptedField()
    set_at = models.DateTimeField(default=timezone.now)
    set_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["connector", "kind", "name"], name="secret_once"),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class PendingSignIn(models.Model):
    """A sign-in between its two requests: to the authorization server, and back from it."""

    connector = models.ForeignKey(Connector, models.CASCADE, related_name="pending_sign_ins")
    user = models.ForeignKey(User, models.CASCADE, related_name="+")
    # SHA-256 of the state, in hexadecimal. Whoever presents the state uses the row up.
    digest = models.CharField(max_length=64, unique=True)
    # `oauth.flow.Plan` as JSON, with the code verifier.
    plan = EncryptedField()
    # The connector's, when it began: a changed connector is another one.
    generation = models.PositiveIntegerField()
    started_at = models.DateTimeField()

    def __str__(self) -> str:
        return "pending sign-in"


class OAuthGrant(models.Model):
    """The access that somebody gave by signing in to a server, with its current tokens."""

    connector = models.OneToOneField(Connector, models.CASCADE, related_name="grant")
    issuer = models.CharField(max_length=2048)
    token_endpoint = models.CharField(max_length=2048)
    resource = models.CharField(max_length=2048)
    # Space-separated: what was granted, and what the server has since missed.
    scope = models.TextField(blank=True)
    missing_scope = models.TextField(blank=True)
    # `oauth.tokens.Client` as JSON, with its secret.
    client = EncryptedField()
    access_token = EncryptedField()
    refresh_token = EncryptedField(null=True)
    issued_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True)
    # None since the sign-in.
    renewed_at = models.DateTimeField(null=True)
    # Of the tokens: changes with each renewal, unlike the connector's.
    generation = models.PositiveIntegerField(default=1)
    # Who renews them now, and until when nobody else does.
    lease_owner = models.CharField(max_length=32, blank=True)
    lease_until = models.DateTimeField(null=True)
    # A renewal was sent and its answer never stored: the server may have replaced the tokens.
    sent_at = models.DateTimeField(null=True)
    signed_in_at = models.DateTimeField()
    signed_in_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")

    def __str__(self) -> str:
        return f"sign-in at {self.issuer}"


class ListingKind(models.TextChoices):
    RESOURCES = "resources", "resources/list"
    TEMPLATES = "templates", "resources/templates/list"
    TOOLS = "tools", "tools/list"


class Listing(models.Model):
    """The last good listing of one kind, and how taking it went. A failed one replaces nothing."""

    connector = models.ForeignKey(Connector, models.CASCADE, related_name="listings")
    kind = models.CharField(max_length=10, choices=ListingKind.choices)
    entries = ExactJSONField(default=list)
    # [{"name", "uri", "reason"}]: marked entries that are no facets, templates that do not parse.
    skipped = ExactJSONField(default=list)
    cut_short = models.TextField(blank=True)
    taken_at = models.DateTimeField(null=True)
    failed_at = models.DateTimeField(null=True)
    failure = models.TextField(blank=True)
    # The connector's epoch when it was taken.
    epoch = models.PositiveIntegerField(default=0)
    lease_until = models.DateTimeField(null=True)
    lease_owner = models.CharField(max_length=32, blank=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=["connector", "kind"], name="listing_once"),)

    def __str__(self) -> str:
        return f"{self.kind} of {self.connector_id}"


class Check(models.Model):
    """One look at a connector: when, how it went, how long it took. Kept for a day."""

    connector = models.ForeignKey(Connector, models.CASCADE, related_name="checks")
    at = models.DateTimeField(db_index=True)
    is_ok = models.BooleanField()
    latency_ms = models.PositiveIntegerField(null=True)
    result = models.CharField(max_length=200)

    class Meta:
        indexes = (models.Index(fields=["connector", "-at"], name="check_of_connector"),)

    def __str__(self) -> str:
        return f"{self.at} {self.result}"


class Caller(models.TextChoices):
    AGENT = "agent", "Agent"
    OUTSIDE = "outside", "Outside client"
    TASK = "task", "Task"
    PERSON = "person", "Person"


class Outcome(models.TextChoices):
    OK = "ok", "OK"
    TOOL_ERROR = "tool_error", "Tool error"
    FAILED = "failed", "Failed"
    REFUSED = "refused", "Refused"
    CANCELLED = "cancelled", "Cancelled"


class ToolCall(models.Model):
    """The trace of one tool call. Contents are never recorded."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="tool_calls")
    connector = models.ForeignKey(Connector, models.SET_NULL, null=True, related_name="tool_calls")
    connector_name = models.CharField(max_length=100, blank=True)
    tool = models.CharField(max_length=200)
    caller = models.CharField(max_length=7, choices=Caller.choices)
    user = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    token = models.ForeignKey(ApiToken, models.SET_NULL, null=True, related_name="+")
    started_at = models.DateTimeField()
    duration_ms = models.PositiveIntegerField()
    outcome = models.CharField(max_length=10, choices=Outcome.choices)
    # Words for people, without anything that the server sent.
    problem = models.CharField(max_length=300, blank=True)
    # A `sessions.FaultKind`, where the server failed.
    fault = models.CharField(max_length=20, blank=True, default="", db_default="")
    resources_read = models.PositiveIntegerField(default=0)
    resources_refused = models.PositiveIntegerField(default=0)

    class Meta:
        indexes = (
            models.Index(fields=["workspace", "-started_at"], name="call_of_workspace"),
            models.Index(fields=["started_at"], name="call_by_age"),
        )

    def __str__(self) -> str:
        return f"{self.tool} {self.started_at}"


class TraceEvent(models.Model):
    """Something that happened within a tool call, e.g. one `resource_argument` per URI."""

    call = models.ForeignKey(ToolCall, models.CASCADE, related_name="events")
    position = models.PositiveIntegerField()
    kind = models.CharField(max_length=20)
    offset_ms = models.PositiveIntegerField()
    uri = ExactJSONField(null=True)
    server = models.ForeignKey(Connector, models.SET_NULL, null=True, related_name="+")
    server_name = models.CharField(max_length=100, blank=True)
    code = models.CharField(max_length=20, blank=True)
    size_bytes = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["call", "position"], name="event_position_once"),
        )
        indexes = (models.Index(fields=["code", "server"], name="event_by_code"),)

    def __str__(self) -> str:
        return f"{self.kind} {self.code}"
