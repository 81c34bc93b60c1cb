"""What the endpoint reads from the database: in one hop to a thread, in a few statements.

Everything that decides (the token, the membership, each connector's facts and generation, the
version of each listing) is read for every request. What follows from it is kept in the process,
and used again while all of that is the same. A new secret is a new generation.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.db.models import OuterRef, Q, QuerySet

from connectors.endpoint.catalogue import Caller, Catalogue, Offer
from connectors.endpoint.listed import Listed, Listings
from connectors.endpoint.prepared import Folded, Prepared
from connectors.models import Connector, ListingKind
from connectors.queries import Standing, is_ready, standings, targets_of
from connectors.sessions import Target
from connectors.status import Status
from workspaces.actions import note_token_use
from workspaces.models import ApiToken, User, Workspace
from workspaces.queries import digest_of_token, live_token, live_tokens

logger = logging.getLogger(__name__)

USE_NOTED_EVERY: Final = timedelta(minutes=1)
KEPT_FOR: Final = timedelta(seconds=5)
"""How long a catalogue may be used again: what only the clock changes is late by this at most."""


@dataclass(frozen=True, slots=True)
class Changed:
    """A token that is good, and no catalogue for it. stamp: all that one is made of."""

    stamp: object


def admit(token: str, slug: str, now: datetime) -> Catalogue | None:
    """Give what the bearer of a token reaches in a workspace; None for everybody else.

    No such workspace, no member of it, a token that is unknown, expired, revoked or of another
    workspace: all alike.
    """
    found = look_up(token, slug, now)
    return _admit_anew(token, slug, found.stamp, now) if isinstance(found, Changed) else found


def look_up(token: str, slug: str, now: datetime) -> Catalogue | Changed | None:
    """The same for the price of one short statement, where nothing has changed."""
    stamp = _REACH.rows(digest=digest_of_token(token), slug=slug, now=now)
    if not stamp:
        return None
    [(token_id, *_)] = stamp
    return _catalogues.get(token_id, stamp, now) or Changed(stamp)


def _admit_anew(token: str, slug: str, stamp: object, now: datetime) -> Catalogue | None:
    found = live_token(token, slug, now)
    if found is None:
        return None
    _note_use(found, now)
    allowed = found.allowed_tools
    caller = Caller(
        workspace_id=found.workspace_id,
        user_id=found.user_id,
        token_id=found.pk,
        allowed_tools=None if allowed is None else tuple(allowed),
        has_resource_tools=found.workspace.has_resource_tools,
    )
    catalogue = _catalogue(caller, found.workspace, found.user, now)
    _catalogues.put(found.pk, stamp, catalogue, now)
    return catalogue


def catalogue_for(workspace: Workspace, user: User, now: datetime) -> Catalogue:
    """Give what a member reaches who is signed in, e.g. on the Tools page."""
    caller = Caller(workspace.pk, user.pk, None, None, workspace.has_resource_tools)
    return _catalogue(caller, workspace, user, now)


def _catalogue(caller: Caller, workspace: Workspace, user: User, now: datetime) -> Catalogue:
    mine = Connector.objects.filter(Q(workspace=workspace) | Q(owner=user))
    asked = [
        each
        for each in standings(mine.filter(asked_at__isnull=False), now)
        if each.status is not Status.AT_REST
    ]
    ready = [each.connector.pk for each in asked if each.status is Status.READY]
    targets = targets_of(Connector.objects.filter(pk__in=ready), now) if ready else {}
    listed = _listings.of([each.connector for each in asked])
    return Catalogue(caller, (_offer(each, targets, listed) for each in asked))


def _offer(
    standing: Standing, targets: Mapping[int, Target], listed: Mapping[tuple[int, str], Listed]
) -> Offer:
    connector = standing.connector
    resources = listed[connector.pk, ListingKind.RESOURCES]
    templates = listed[connector.pk, ListingKind.TEMPLATES]
    return Offer(
        connector_id=connector.pk,
        slug=connector.slug,
        name=connector.name,
        status=standing.status,
        status_label=standing.label,
        is_personal=connector.is_personal,
        target=targets.get(connector.pk),
        tools=listed[connector.pk, ListingKind.TOOLS].tools,
        templates=templates.templates,
        template_entries=templates.entries,
        resources=resources.resources,
        resources_failure=resources.failure,
    )


def _note_use(token: ApiToken, now: datetime) -> None:
    """Remember, at most once a minute, that the token and the endpoint are in use.

    While it is, the listings that it serves are kept young.
    """
    before = now - USE_NOTED_EVERY
    if token.last_used_at is None or token.last_used_at <= before:
        note_token_use(token, now)
    workspace = token.workspace
    if workspace.endpoint_used_at is None or workspace.endpoint_used_at <= before:
        Workspace.objects.filter(pk=workspace.pk).update(endpoint_used_at=now)
        _queue_listings(Connector.objects.filter(is_ready(), workspace=workspace), now)
    if token.last_used_at is None or token.last_used_at <= before:
        _queue_listings(Connector.objects.filter(is_ready(), owner=token.user), now)


def _queue_listings(connectors: QuerySet[Connector], now: datetime) -> None:
    from connectors.tasks import queue_listings

    try:
        queue_listings(connectors, now)
    except Exception:
        # Without a broker the stored listings still serve.
        logger.exception("Listings could not be queued")


class _Catalogues:
    """The last catalogue of each token, good as long as everything it was made of is the same."""

    def __init__(self) -> None:
        self._kept: OrderedDict[int, tuple[object, datetime, Catalogue]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, token_id: int, stamp: object, now: datetime) -> Catalogue | None:
        with self._lock:
            kept_stamp, made_at, catalogue = self._kept.get(token_id, (None, now, None))
        is_young = now - KEPT_FOR < made_at <= now
        return catalogue if is_young and kept_stamp == stamp else None

    def put(self, token_id: int, stamp: object, catalogue: Catalogue, now: datetime) -> None:
        with self._lock:
            self._kept[token_id] = (stamp, now, catalogue)
            self._kept.move_to_end(token_id)
            for other, (_, made_at, _) in list(self._kept.items()):
                if now - KEPT_FOR < made_at:
                    break  # They are in the order of their making.
                del self._kept[other]


def _reach_of(digest: str, slug: str, now: datetime) -> QuerySet[ApiToken, Any]:
    """The token, and everything of its connectors that a catalogue depends on."""
    mine = Q(workspace_id=OuterRef("workspace_id")) | Q(owner_id=OuterRef("user_id"))
    connectors = (
        Connector.objects.filter(mine, asked_at__isnull=False)
        .order_by("pk", "listings__pk")
        .values_list(
            "pk",
            "name",
            "generation",
            "epoch",
            "connection",
            "credential_refused_at",
            "sign_in_started_at",
            "sign_in_needed",
            "first_ready_at",
            "required",
            "grant__pk",
            "grant__generation",
            "listings__pk",
            "listings__taken_at",
            "listings__failure",
        )
    )
    return live_tokens(digest, slug, now).values_list(
        "pk",
        "workspace_id",
        "user_id",
        "allowed_tools",
        "workspace__has_resource_tools",
        Folded(connectors),
    )


_REACH = Prepared(_reach_of, digest="-", slug="--", now=datetime(1999, 1, 1, tzinfo=UTC))

_listings = Listings()
_catalogues = _Catalogues()


def forget() -> None:
    """Drop what this process keeps; it is read again when it is needed."""
    global _listings, _catalogues
    _listings, _catalogues = Listings(), _Catalogues()
