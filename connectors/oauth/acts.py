"""Changes of connectors by signing in: begun, ended without success, finished."""

from __future__ import annotations

from datetime import datetime, timedelta
from hashlib import sha256

from django.db import transaction
from django.db.models import F, Q, Value
from django.db.models.functions import Coalesce

from connectors.actions import audit, check_soon, fresh_start, panel_of
from connectors.declared import Declared, as_json, from_json
from connectors.models import Connector, OAuthGrant, PendingSignIn, SecretKind
from connectors.oauth.metadata import host_of
from connectors.oauth.tokens import Client, Tokens
from connectors.status import Connection
from workspaces.models import User

PENDING_LASTS = timedelta(minutes=10)


@transaction.atomic
def begin_sign_in(connector: Connector, state: str, plan: str, *, by: User, now: datetime) -> None:
    """Somebody is about to be sent to the authorization server.

    An earlier sign-in of theirs to this connector is over: what comes back from it is refused.
    """
    PendingSignIn.objects.filter(started_at__lt=now - PENDING_LASTS).delete()
    PendingSignIn.objects.filter(connector=connector, user=by).delete()
    PendingSignIn.objects.create(
        connector=connector,
        user=by,
        digest=_digest_of(state),
        plan=plan,
        generation=connector.generation,
        started_at=now,
    )
    # It leaves ready until the sign-in ends: what was counted before is not shown after.
    working = Connector.objects.filter(pk=connector.pk, connection=Connection.READY)
    working.update(epoch=F("epoch") + 1)
    Connector.objects.filter(pk=connector.pk).update(
        sign_in_started_at=now,
        asked_at=Coalesce("asked_at", Value(now)),
        asked_by=Coalesce("asked_by", Value(by.pk)),
    )
    panel_of(connector)


def take_pending(state: str, user: User, now: datetime) -> PendingSignIn | None:
    """Use up the sign-in that a state belongs to; None unless it is this person's and still valid.

    Whoever deletes the row has it: a second request with the same state finds nothing.
    """
    pending = (
        PendingSignIn.objects.select_related("connector__workspace", "user")
        .filter(digest=_digest_of(state), user=user)
        .first()
    )
    if pending is None or not PendingSignIn.objects.filter(pk=pending.pk).delete()[0]:
        return None
    is_valid = (
        now - pending.started_at < PENDING_LASTS
        and pending.generation == pending.connector.generation
    )
    return pending if is_valid else None


@transaction.atomic
def end_sign_in(connector: Connector, words: str) -> None:
    """A sign-in ended without success. What worked before it still works; the rest waits."""
    current = Connector.objects.filter(pk=connector.pk, generation=connector.generation)
    is_working = Q(connection=Connection.READY, credential_refused_at__isnull=True)
    current.filter(is_working).update(sign_in_started_at=None)
    current.exclude(is_working).update(
        sign_in_started_at=None, sign_in_needed=True, failure=words, failure_detail=""
    )
    panel_of(connector)


def forget_scopes(connector: Connector) -> None:
    """Ask only for what the server asks for: what was granted or missed once is not known now."""
    OAuthGrant.objects.filter(connector=connector).update(scope="", missing_scope="")


@transaction.atomic
def finish_sign_in(
    connector: Connector,
    facts: dict[str, str],
    client: Client,
    tokens: Tokens,
    by: User,
    now: datetime,
) -> bool:
    """Store what a sign-in gave, and have the connector tried with it; False if it has changed.

    facts: the issuer, token_endpoint, resource and scope of the grant.
    """
    current = Connector.objects.filter(pk=connector.pk, generation=connector.generation)
    if not current.update(**fresh_start(now)):
        return False
    OAuthGrant.objects.filter(connector=connector).delete()
    OAuthGrant.objects.create(
        connector=connector,
        client=client.to_json(),
        access_token=tokens.access_token,
        refresh_token=tokens.refresh_token,
        issued_at=now,
        expires_at=tokens.expires_at,
        signed_in_at=now,
        signed_in_by=by,
        **facts,
    )
    audit(connector, "signed in to connector", by)
    panel_of(connector)
    check_soon(connector.pk)
    return True


def ask_for_client(connector: Connector, issuer: str) -> None:
    """Make the connector want a client of that issuer's: a setting that an admin fills in."""
    host = host_of(issuer)
    wanted = [
        Declared(SecretKind.CLIENT, f"client_id@{issuer}", f"Client ID at {host}", is_secret=False),
        Declared(
            SecretKind.CLIENT,
            f"client_secret@{issuer}",
            f"Client secret at {host}",
            is_required=False,
        ),
    ]
    declared = from_json(connector.required)
    known = {each.key for each in declared}
    connector.required = as_json(declared + [each for each in wanted if each.key not in known])
    connector.save(update_fields=["required"])
    panel_of(connector)


def _digest_of(state: str) -> str:
    return sha256(state.encode("utf-8", "surrogatepass")).hexdigest()
