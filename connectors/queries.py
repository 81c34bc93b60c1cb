"""Reads about connectors. The status of each is derived here, from facts, at read time."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import count

from django.conf import settings
from django.db.models import Q, QuerySet
from django.http import Http404
from django.utils import timezone
from django.utils.text import slugify

from connectors.declared import filled, from_json, headers_of, required_keys
from connectors.errors import SecretUnreadable
from connectors.models import Connector, Secret, SecretKind, Transport
from connectors.oauth.grants import Held, held_by
from connectors.oauth.renewal import CurrentToken
from connectors.protocol.placements import Placement, app_order_key, first_route, parse_placements
from connectors.runtime import is_allowed_address
from connectors.sessions import Target
from connectors.status import SIGN_IN_LASTS, Connection, Facts, Status, label_of, status_of
from workspaces.models import User, Workspace

BEARER, HEADER, VARIABLE = SecretKind.BEARER, SecretKind.HEADER, SecretKind.VARIABLE

# An address below the workspace's connectors that is a page of its own.
RESERVED_SLUGS = frozenset({"add", "nb"})
"""The address of another page, and the prefix of the host's own tools."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A connector as it stands now."""

    connector: Connector
    status: Status
    missing: tuple[str, ...]
    placements: tuple[Placement, ...]

    @property
    def label(self) -> str:
        """The status in words; who disconnected it is part of them."""
        if self.status is Status.AT_REST and self.connector.disconnected_at:
            return "Disconnected"
        return label_of(self.status)

    @property
    def route(self) -> str | None:
        return first_route(self.placements)


def required_of(connector: Connector) -> list[tuple[str, str]]:
    """The (kind, name) of each secret without which the connector cannot connect."""
    return required_keys(connector.url, from_json(connector.required))


STANDING_FIELDS = (
    "slug",
    "name",
    "url",
    "required",
    "placements",
    "asked_at",
    "disconnected_at",
    "sign_in_started_at",
    "sign_in_needed",
    "credential_refused_at",
    "first_ready_at",
    "connection",
)
"""The columns that a standing is derived from."""


def standing_of(
    connector: Connector, secrets: Iterable[tuple[str, str]], now: datetime
) -> Standing:
    """Derive the standing. secrets: the (kind, name) of those that have a value."""
    present = set(secrets)
    missing = tuple(name for kind, name in required_of(connector) if (kind, name) not in present)
    facts = Facts(
        asked_at=connector.asked_at,
        missing=missing,
        sign_in_started_at=connector.sign_in_started_at,
        credential_refused_at=connector.credential_refused_at,
        sign_in_needed=connector.sign_in_needed,
        ever_ready=connector.first_ready_at is not None,
        connection=Connection(connector.connection),
    )
    placements = tuple(parse_placements(connector.placements)[0])
    return Standing(connector, status_of(facts, now), missing, placements)


def standings(connectors: QuerySet[Connector], now: datetime) -> list[Standing]:
    """The standing of each, in at most two statements, in the shell's app order."""
    found = list(connectors.defer("capabilities", "discovery"))
    present: dict[int, list[tuple[str, str]]] = {}
    # Only names leave the database here: an encrypted value is read when it is sent.
    rows = Secret.objects.filter(connector__in=[each.pk for each in found if required_of(each)])
    for pk, kind, name in rows.values_list("connector_id", "kind", "name"):
        present.setdefault(pk, []).append((kind, name))
    found_standings = [standing_of(each, present.get(each.pk, ()), now) for each in found]
    return sorted(found_standings, key=_app_order)


def _app_order(standing: Standing) -> tuple[int, str, str, str]:
    connector = standing.connector
    return app_order_key(standing.placements, connector.name, connector.slug)


def connectors_of(whose: Workspace | User) -> QuerySet[Connector]:
    """The workspace's own connectors, or a person's: those belong to no workspace."""
    if isinstance(whose, User):
        return Connector.objects.filter(owner=whose)
    return Connector.objects.filter(workspace=whose)


def connector_of(whose: Workspace | User, slug: str) -> Connector:
    """Raises: Http404 when this workspace, or this person, has no such connector."""
    connector = connectors_of(whose).filter(slug=slug).first()
    if connector is None:
        raise Http404
    return connector


def free_slug(whose: Workspace | User, name: str) -> str:
    """A slug for a new connector of that name. Two who ask at once get the same one."""
    base = slugify(name).replace("_", "-").strip("-")[:36].strip("-") or "connector"
    base = re.sub("-+", "-", base)
    taken = {*connectors_of(whose).values_list("slug", flat=True), *RESERVED_SLUGS}
    numbered = (f"{base}-{number}" for number in count(2))
    return base if base not in taken else next(each for each in numbered if each not in taken)


def standing_now(connector: Connector, now: datetime) -> Standing:
    """The standing of one connector."""
    return standing_of(connector, connector.secrets.values_list("kind", "name"), now)


def targets_of(connectors: QuerySet[Connector], now: datetime) -> dict[int, Target]:
    """Where and how to reach those of them that somebody asked for and that miss nothing.

    Two statements. The secrets are decrypted here, as late as possible.
    """
    wanted = connectors.filter(asked_at__isnull=False).select_related("grant")
    targets = {}
    for connector in wanted.prefetch_related("secrets"):
        secrets = list(connector.secrets.all())
        standing = standing_of(connector, [(each.kind, each.name) for each in secrets], now)
        if standing.status is not Status.AT_REST and not standing.missing:
            targets[connector.pk] = _target_of(connector, secrets, held_by(connector))
    return targets


def readable_targets(
    connectors: QuerySet[Connector], now: datetime
) -> tuple[dict[int, Target], set[int]]:
    """The targets, and apart from them the connectors with a secret that no key can read: such a
    one costs itself alone."""
    try:
        return targets_of(connectors, now), set()
    except SecretUnreadable:
        targets: dict[int, Target] = {}
        unreadable: set[int] = set()
        for pk in connectors.values_list("pk", flat=True):
            try:
                targets |= targets_of(connectors.filter(pk=pk), now)
            except SecretUnreadable:
                unreadable.add(pk)
        return targets, unreadable


def target_to(connector: Connector, *, with_grant: bool = False) -> Target:
    """Where and how to reach a connector, whatever its status. with_grant: and what signing in
    gave."""
    held = held_by(connector) if with_grant else None
    return _target_of(connector, list(connector.secrets.all()), held)


def _target_of(connector: Connector, secrets: list[Secret], held: Held | None) -> Target:
    values = {(each.kind, each.name): each.value for each in secrets}
    variables = {name: value for (kind, name), value in values.items() if kind == VARIABLE}
    headers = [(name, value) for (kind, name), value in values.items() if kind == HEADER]
    headers += [
        ("Authorization", f"Bearer {value}")
        for (kind, _), value in values.items()
        if kind == BEARER
    ]
    given = {name.lower() for name, _ in headers}
    composed = headers_of(from_json(connector.required), variables)
    headers += [(name, value) for name, value in composed if name.lower() not in given]
    if held is not None:
        headers = [(name, value) for name, value in headers if name.lower() != "authorization"]
    url = filled(connector.url, variables)
    is_stdio, bundle = connector.transport == Transport.STDIO, connector.ca_bundle
    return Target(
        connector_id=connector.pk,
        generation=connector.generation,
        url="" if is_stdio else url,
        headers=tuple(headers),
        is_personal=connector.is_personal,
        discovery=connector.discovery,
        command=tuple(settings.STDIO_SERVERS.get(connector.command, ())) if is_stdio else None,
        authorization=CurrentToken(held, is_allowed_address, bundle) if held else None,
        ca_bundle=bundle,
    )


def is_ready() -> Q:
    """The facts of a ready connector, as a condition; missing settings are not among them."""
    is_over = Q(sign_in_started_at__lte=timezone.now() - SIGN_IN_LASTS)
    return Q(
        Q(sign_in_started_at__isnull=True) | is_over,
        asked_at__isnull=False,
        connection=Connection.READY,
        credential_refused_at__isnull=True,
        sign_in_needed=False,
    )
