"""Changes of connectors: what people ask for. What contact teaches us is in `contact`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from connectors.declared import from_json, variables_in
from connectors.errors import SecretUnreadable
from connectors.fields import EncryptedField
from connectors.models import (
    Connector,
    Listing,
    ListingKind,
    OAuthGrant,
    PendingSignIn,
    Secret,
    SecretKind,
)
from connectors.queries import RESERVED_SLUGS
from connectors.runtime import end_unwanted
from connectors.status import Connection
from workspaces.actions import record_act
from workspaces.models import User
from workspaces.push import panel_changed


@transaction.atomic
def add_connector(connector: Connector, secrets: list[Secret], *, by: User | None) -> Connector:
    """Store a new connector with its secrets, at rest until somebody asks for it.

    Raises: django.core.exceptions.ValidationError, e.g. when the workspace has that slug already.
    """
    if connector.slug in RESERVED_SLUGS:
        raise ValidationError({"slug": f"“{connector.slug}” is reserved. Choose another."})
    _validate(connector)
    try:
        with transaction.atomic():
            connector.save()
    except IntegrityError:
        # Two who add the same one at once both find its slug free.
        raise ValidationError("This connector has just been added.") from None
    for secret in secrets:
        secret.connector, secret.set_by = connector, by
        secret.save()
    Listing.objects.bulk_create(
        Listing(connector=connector, kind=kind) for kind in ListingKind.values
    )
    audit(connector, "connector added", by, [f"{each} set" for each in secrets])
    panel_of(connector)
    return connector


@transaction.atomic
def connect_connector(connector: Connector, *, by: User | None) -> None:
    """Ask for a connector: it is tried at once, and again for as long as it is asked for."""
    now = timezone.now()
    Connector.objects.filter(pk=connector.pk).update(
        asked_at=now,
        asked_by=by,
        disconnected_at=None,
        disconnected_by=None,
        **fresh_start(now),
    )
    audit(connector, "connector connected", by, secrets_used(connector))
    panel_of(connector)
    check_soon(connector.pk)


@transaction.atomic
def check_by_hand(connector: Connector, *, by: User | None) -> None:
    """Have a connector checked now because somebody asks for it."""
    record_use(connector, "connector checked", by=by)
    check_soon(connector.pk)


def record_use(connector: Connector, action: str, *, by: User | None) -> None:
    """One line of audit for an act that sends a connector's secrets; none where it has none.

    What the host does by itself afterwards is no act: a line per read would bury all others.
    """
    if used := secrets_used(connector):
        audit(connector, action, by, used)


def secrets_used(connector: Connector) -> list[str]:
    """What is sent to the server for whoever makes the host talk to it, in words without values."""
    plain = {each.key for each in from_json(connector.required) if not each.is_secret}
    sent = connector.secrets.exclude(kind=SecretKind.CLIENT).defer("value").order_by("pk")
    words = [f"{each} used" for each in sent if (each.kind, each.name) not in plain]
    if OAuthGrant.objects.filter(connector=connector).exists():
        words.append("sign-in used")
    return words


@transaction.atomic
def disconnect_connector(connector: Connector, *, by: User | None) -> None:
    """Put a connector at rest on purpose: its rows leave the panel and its server is left alone."""
    now = timezone.now()
    asked = Connector.objects.filter(pk=connector.pk, asked_at__isnull=False)
    changed = asked.update(
        asked_at=None,
        disconnected_at=now,
        disconnected_by=by,
        **fresh_start(now) | {"connection": Connection.IDLE, "check_due_at": None},
    )
    if changed != 1:
        return  # Already at rest: another request got there first.
    audit(connector, "connector disconnected", by)
    panel_of(connector)
    _hang_up()


@transaction.atomic
def cancel_connector(connector: Connector, *, by: User | None) -> None:
    """Give up the sign-in or the first attempt that is under way.

    After a sign-in, a connector that worked before keeps being asked for and waits for a person.
    Otherwise the connector is at rest; one that never worked is so as if nobody had asked.
    """
    PendingSignIn.objects.filter(connector=connector).delete()
    signing_in = Connector.objects.filter(
        pk=connector.pk, sign_in_started_at__isnull=False, first_ready_at__isnull=False
    )
    is_working = Q(connection=Connection.READY)
    changed = signing_in.filter(is_working).update(sign_in_started_at=None)
    changed += signing_in.update(sign_in_started_at=None, sign_in_needed=True)
    if not changed:
        at_rest: dict[str, object] = {
            "asked_at": None,
            "connection": Connection.IDLE,
            "check_due_at": None,
        }
        if connector.first_ready_at:
            at_rest |= {"disconnected_at": timezone.now(), "disconnected_by": by}
        asked = Connector.objects.filter(pk=connector.pk, asked_at__isnull=False)
        changed = asked.exclude(connection=Connection.READY).update(
            **fresh_start(timezone.now()) | at_rest
        )
    if changed:
        audit(connector, "connection cancelled", by)
        panel_of(connector)
        _hang_up()


@transaction.atomic
def configure_connector(
    connector: Connector, secrets: list[Secret], cleared: list[Secret], *, by: User | None
) -> None:
    """Store what an admin changed. A new address or secret is a new generation of the connection.

    secrets: new values; one of the same kind and name is replaced. cleared: removed.
    What was given by signing in to another address or client is forgotten, and gives way to a
    token or header that says the same.
    """
    now = timezone.now()
    before = Connector.objects.get(pk=connector.pk)
    _validate(connector)
    fields = ["name", "url", "transport", "command", "required", "placements", "ca_bundle"]
    connector.save(update_fields=fields)
    for secret in secrets:
        Secret.objects.update_or_create(
            connector=connector,
            kind=secret.kind,
            name=secret.name,
            defaults={"value": secret.value, "set_at": now, "set_by": by},
        )
    for secret in cleared:
        secret.delete()
    reached = ["url", "transport", "command"]
    is_moved = is_another = any(
        getattr(before, each) != getattr(connector, each) for each in reached
    )
    has_other_bundle = before.ca_bundle != connector.ca_bundle
    if secrets or cleared or is_moved or has_other_bundle:
        is_moved |= any(_moves(each, connector.url) for each in [*secrets, *cleared])
        if is_moved or any(map(_replaces_sign_in, [*secrets, *cleared])):
            OAuthGrant.objects.filter(connector=connector).delete()
        changes = fresh_start(now)
        if connector.asked_at is None:
            changes |= {"connection": Connection.IDLE, "check_due_at": None}
        Connector.objects.filter(pk=connector.pk).update(**changes)
        check_soon(connector.pk)
        _hang_up()
    what = ["another address"] if is_another else []
    what += ["another CA bundle"] if has_other_bundle else []
    what += [f"{each} set" for each in secrets] + [f"{each} cleared" for each in cleared]
    audit(connector, "connector configured", by, what)
    panel_of(connector)


@transaction.atomic
def remove_connector(connector: Connector, *, by: User | None) -> None:
    """Delete a connector with its secrets, counts and listings. Traces stay until their date."""
    # Locked first, as those who store readings do: what comes later finds it gone, and no two
    # wait for each other's rows.
    if not Connector.objects.select_for_update().filter(pk=connector.pk):
        return  # Another request got there first.
    connector.delete()
    audit(connector, "connector removed", by)
    panel_of(connector)
    _hang_up()


def _hang_up() -> None:
    """This process ends its connections at once, every other one within seconds."""
    transaction.on_commit(end_unwanted, robust=True)


def _moves(secret: Secret, url: str) -> bool:
    return secret.kind == SecretKind.VARIABLE and secret.name in variables_in(url)


def _replaces_sign_in(secret: Secret) -> bool:
    is_header = secret.kind == SecretKind.HEADER and secret.name.lower() == "authorization"
    return is_header or secret.kind in (SecretKind.BEARER, SecretKind.CLIENT)


def rotate_secrets() -> tuple[int, list[str]]:
    """Encrypt everything that is encrypted with the first of `settings.SECRETS_KEYS`.

    Returns how many, and in words those that no key can read: they stay as they are.
    """
    rotated, unreadable = 0, []
    for model in (Secret, OAuthGrant, PendingSignIn):
        sealed = [each.name for each in model._meta.fields if isinstance(each, EncryptedField)]
        rows = model._default_manager
        for pk in rows.values_list("pk", flat=True):
            try:
                with transaction.atomic():
                    rows.select_for_update().get(pk=pk).save(update_fields=sealed)
                    rotated += 1
            except model.DoesNotExist:
                continue  # Cleared meanwhile.
            except SecretUnreadable:
                row = rows.defer(*sealed).select_related("connector").get(pk=pk)
                unreadable.append(f"{row} of {row.connector}")
    return rotated, unreadable


def _validate(connector: Connector) -> None:
    """Check what people fill in; facts are ours.

    Raises: django.core.exceptions.ValidationError.
    """
    filled_in = {"workspace", "owner", "slug", "name", "transport", "url", "command"}
    connector.full_clean({field.name for field in Connector._meta.fields} - filled_in)


def fresh_start(now: datetime) -> dict[str, object]:
    """The facts of a connection that nobody has tried yet."""
    return {
        "generation": F("generation") + 1,
        "epoch": F("epoch") + 1,
        "connection": Connection.STARTING,
        "connection_since": now,
        "sign_in_started_at": None,
        "sign_in_needed": False,
        "credential_refused_at": None,
        "failure": "",
        "failure_detail": "",
        "attempt": 0,
        "check_due_at": now,
        "check_lease_until": None,
        # The address may lead to another server now: what the old one said is not kept.
        "capabilities": None,
        "discovery": None,
        "advertises_facets": False,
    }


def _checkable() -> QuerySet[Connector]:
    """Those that are wanted. A refused credential is not tried again: a server that answers a
    check without looking at it would make the connector seem ready."""
    return Connector.objects.filter(asked_at__isnull=False, credential_refused_at__isnull=True)


def check_soon(connector_id: int) -> None:
    """Have a connector checked now, after the commit, instead of with the next sweep."""
    from connectors.tasks import check_connector

    _checkable().filter(pk=connector_id).update(check_due_at=timezone.now())
    # Without a broker the next sweep finds it due.
    transaction.on_commit(lambda: check_connector.delay(connector_id), robust=True)


def doubt_connection(connector_id: int) -> None:
    """Have a connector checked now because a call failed on its connection.

    A failed call is no verdict: the check is, after its own quick retry. A connector that is not
    ready is tried again when its pause is over and no sooner, so that calls that were still under
    way when it failed cause no storm (D14).
    """
    if Connector.objects.filter(pk=connector_id, connection=Connection.READY).exists():
        check_soon(connector_id)


def restart_connections(connectors: QuerySet[Connector], now: datetime) -> None:
    """The host starts: nothing is known of these connections until their first attempt is over.

    What was refused is not tried again before somebody acts, and stays refused since when it was.
    """
    wanted = connectors.filter(
        asked_at__isnull=False, credential_refused_at__isnull=True, sign_in_needed=False
    )
    wanted.filter(connection=Connection.READY).update(epoch=F("epoch") + 1)
    wanted.filter(connection__in=[Connection.READY, Connection.FAILED, Connection.MOVED]).update(
        connection=Connection.STARTING, connection_since=now, attempt=0
    )
    wanted.update(check_due_at=now, check_lease_until=None)


def panel_of(connector: Connector) -> None:
    if connector.workspace_id is not None:
        panel_changed(connector.workspace_id)


def audit(connector: Connector, action: str, by: User | None, what: Iterable[str] = ()) -> None:
    """One line, if it is a workspace's. what: parts of the act, in words without a secret."""
    if connector.workspace is not None:
        more = ", ".join(what)
        subject = f"{connector.name}: {more}" if more else connector.name
        record_act(connector.workspace, action, subject, by=by)
