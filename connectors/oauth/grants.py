"""The stored grants: current tokens, who renews them, and what a refusal means.

Shell, synchronous. Every change compares the generation of the tokens, so that what belongs to
older ones, or to an earlier sign-in, changes nothing.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q, QuerySet

from connectors.models import Connector, OAuthGrant
from connectors.oauth.tokens import Client, Tokens
from workspaces import tallies
from workspaces.push import panel_changed

logger = logging.getLogger(__name__)

LEASE_SECONDS = 20
"""Longer than a token request and the storing of its answer: what a killed process costs others."""

EARLY_SECONDS = 30
"""Tokens are renewed this long before they expire, or at half of a life shorter than twice that."""

JUST_SECONDS = 60
"""A token that was renewed within this time and is refused is refused for good."""


@dataclass(frozen=True, slots=True)
class Held:
    """A grant as it was when it was read."""

    pk: int
    connector_id: int
    connector_generation: int
    generation: int
    client: Client
    token_endpoint: str
    resource: str
    scope: str
    missing_scope: str
    access_token: str = field(repr=False)
    refresh_token: str | None = field(repr=False)
    issued_at: datetime
    expires_at: datetime | None
    renewed_at: datetime | None
    is_unsettled: bool
    """A renewal was sent and its answer never stored."""

    @property
    def authorization(self) -> str:
        return f"Bearer {self.access_token}"

    def is_due(self, now: datetime) -> bool:
        """Whether the tokens should be renewed, and can be."""
        if self.expires_at is None or self.refresh_token is None:
            return False
        early = min(timedelta(seconds=EARLY_SECONDS), (self.expires_at - self.issued_at) / 2)
        return now >= self.expires_at - early

    def is_expired(self, now: datetime) -> bool:
        return self.expires_at is not None and now >= self.expires_at

    def is_just_renewed(self, now: datetime) -> bool:
        return self.renewed_at is not None and now - self.renewed_at < timedelta(
            seconds=JUST_SECONDS
        )


def held_by(connector: Connector) -> Held | None:
    """The grant of a connector. Costs no statement where it was selected with the connector."""
    grant: OAuthGrant | None = getattr(connector, "grant", None)
    if grant is None:
        return None
    return Held(
        pk=grant.pk,
        connector_id=connector.pk,
        connector_generation=connector.generation,
        generation=grant.generation,
        client=Client.from_json(grant.client),
        token_endpoint=grant.token_endpoint,
        resource=grant.resource,
        scope=grant.scope,
        missing_scope=grant.missing_scope,
        access_token=grant.access_token,
        refresh_token=grant.refresh_token,
        issued_at=grant.issued_at,
        expires_at=grant.expires_at,
        renewed_at=grant.renewed_at,
        is_unsettled=grant.sent_at is not None,
    )


def current(seen: Held) -> Held | None:
    """The grant as it is now; None when its sign-in, or the connector as it was, is no more."""
    connector = (
        Connector.objects.select_related("grant")
        .filter(pk=seen.connector_id, generation=seen.connector_generation, grant=seen.pk)
        .first()
    )
    return held_by(connector) if connector else None


def claim(held: Held, owner: str, now: datetime) -> bool:
    """Take the lease of renewing these very tokens, unless another process has it."""
    free = Q(lease_until__isnull=True) | Q(lease_until__lt=now)
    claimed = (
        _exactly(held)
        .filter(free)
        .update(lease_owner=owner, lease_until=now + timedelta(seconds=LEASE_SECONDS), sent_at=now)
    )
    return claimed == 1


def release(held: Held, owner: str, *, is_settled: bool) -> None:
    """Give the lease back without new tokens.

    is_settled: the server certainly did not replace them.
    """
    changes: dict[str, object] = {"lease_owner": "", "lease_until": None}
    if is_settled and not held.is_unsettled:
        changes["sent_at"] = None
    _exactly(held).filter(lease_owner=owner).update(**changes)
    tallies.count("token_refreshes", "postponed")


def keep(held: Held, tokens: Tokens, now: datetime) -> None:
    """Store renewed tokens. What the server left out stays as it was (RFC 6749 sections 5.1, 6).

    Even when the lease is lost: whoever has it now is about to be refused, and finds these.
    """
    _exactly(held).update(
        access_token=tokens.access_token,
        refresh_token=tokens.refresh_token or held.refresh_token,
        scope=held.scope if tokens.scope is None else tokens.scope,
        issued_at=now,
        expires_at=tokens.expires_at,
        renewed_at=now,
        generation=F("generation") + 1,
        lease_owner="",
        lease_until=None,
        sent_at=None,
    )
    tallies.count("token_refreshes", "renewed")
    logger.info(
        "Renewed a sign-in", extra={"action": "grant_renewed", "connector": held.connector_id}
    )


@transaction.atomic
def refuse(held: Held, words: str, now: datetime) -> None:
    """The server refused these tokens for good: they go, and a person has to sign in again."""
    connector = Connector.objects.filter(pk=held.connector_id, generation=held.connector_generation)
    # Locked first, as those who change or remove the connector do: else each would wait for what
    # the other one has.
    list(connector.select_for_update(no_key=True).values_list("pk"))
    if not _exactly(held).delete()[0]:
        return  # Newer ones have taken their place.
    tallies.count("token_refreshes", "refused")
    connector.update(
        credential_refused_at=now,
        epoch=F("epoch") + 1,
        failure=words,
        failure_detail="",
        check_due_at=None,
    )
    for workspace_id in connector.values_list("workspace_id", flat=True):
        if workspace_id is not None:
            panel_changed(workspace_id)
    logger.warning(
        "A sign-in was refused", extra={"action": "grant_refused", "connector": held.connector_id}
    )


def note_missing_scope(held: Held, scope: str) -> None:
    """Remember what the server missed, so that the next sign-in asks for it too."""
    OAuthGrant.objects.filter(pk=held.pk).exclude(missing_scope=scope).update(missing_scope=scope)


def _exactly(held: Held) -> QuerySet[OAuthGrant]:
    return OAuthGrant.objects.filter(pk=held.pk, generation=held.generation)
