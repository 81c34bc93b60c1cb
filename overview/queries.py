"""What the overview shows, in a constant number of statements whatever the workspace holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, FilteredRelation, Q
from django.urls import reverse

from connectors.models import ListingKind
from connectors.protocol.facets import Level
from connectors.queries import STANDING_FIELDS, Standing, connectors_of, standings
from connectors.status import SIGN_IN_LASTS, Status, level_of
from overview.counts import policy
from overview.models import StoredFacet
from overview.panel import AppState, FacetReading, Panel, build_panel
from workspaces.models import Workspace

WORST_SHOWN = 5

_SHOWN_FIELDS = ("epoch", "advertises_facets", "checked_at", "latency_ms")


@dataclass(frozen=True, slots=True)
class App:
    """A card of the apps grid."""

    label: str
    icon: str | None
    href: str | None
    status: Status
    status_label: str
    level: Level | None


@dataclass(frozen=True, slots=True)
class ConnectorLine:
    """A line of the connectors' health."""

    name: str
    slug: str
    href: str
    status: Status
    status_label: str
    level: Level | None
    checked_at: datetime | None
    latency_ms: int | None


@dataclass(frozen=True, slots=True)
class Overview:
    """Everything on the page."""

    panel: Panel
    apps: list[App]
    health: list[ConnectorLine]
    connector_count: int


def overview_of(workspace: Workspace, now: datetime) -> Overview:
    """The page of a workspace, out of three statements."""
    found = _standings(workspace, now)
    app_href, href = _app_href(workspace), _connector_href(workspace)
    worst = sorted(found, key=_weight)[:WORST_SHOWN]
    return Overview(
        panel=_panel(workspace, found, now),
        apps=[_app(standing, app_href) for standing in found],
        health=[_line(standing, href(standing.connector.slug)) for standing in worst],
        connector_count=len(found),
    )


def panel_of(workspace: Workspace, now: datetime) -> Panel:
    """The panel alone, out of the same statements."""
    return _panel(workspace, _standings(workspace, now), now)


def app_at(workspace: Workspace, route: str, now: datetime) -> Standing | None:
    """The connector that owns a route of the workspace: the first in app order that places it."""
    for standing in _standings(workspace, now):
        if any(each.is_openable and each.route == route for each in standing.placements):
            return standing
    return None


def rows_of(workspace: Workspace, standing: Standing, now: datetime) -> Panel:
    """The rows of one connector, as the panel has them."""
    return _panel(workspace, [standing], now)


def _standings(workspace: Workspace, now: datetime) -> list[Standing]:
    listing = FilteredRelation("listings", condition=Q(listings__kind=ListingKind.RESOURCES))
    shown = connectors_of(workspace).only(*STANDING_FIELDS, *_SHOWN_FIELDS)
    connectors = shown.annotate(
        listing=listing,
        listed_epoch=F("listing__epoch"),
        listed_at=F("listing__taken_at"),
        listing_failed_at=F("listing__failed_at"),
    )
    return standings(connectors, now)


def _panel(workspace: Workspace, found: list[Standing], now: datetime) -> Panel:
    facets: dict[int, list[FacetReading]] = {}
    ready = {
        standing.connector.pk: standing.connector.epoch
        for standing in found
        if standing.status is Status.READY and standing.connector.advertises_facets
    }
    # Most facets count nothing most of the time; those that surely show no row stay where they are.
    max_age = timedelta(seconds=policy().max_age_seconds)
    rows = StoredFacet.objects.filter(connector__workspace=workspace).exclude(
        count="0", read_at__range=(now - max_age, now + max_age), epoch=F("connector__epoch")
    )
    columns = ("connector_id", "name", "title", "level", "position")
    known = ("count", "read_at", "failed_at")
    for row in rows.values_list(*columns, "epoch", *known):
        pk, name, title, level, position, epoch, *values = row
        if pk in ready:
            read = values if ready[pk] == epoch else [None, None, None]
            facets.setdefault(pk, []).append(
                FacetReading(name, title, Level(level), position, *read)
            )
    apps = [
        _app_state(standing, tuple(facets.get(standing.connector.pk, ()))) for standing in found
    ]
    return build_panel(
        apps,
        now,
        policy(),
        app_href=_app_href(workspace),
        connector_href=_connector_href(workspace),
        version=workspace.panel_version,
    )


def _app_state(standing: Standing, facets: tuple[FacetReading, ...]) -> AppState:
    connector: Any = standing.connector  # Any: it carries the annotations of _standings.
    started = connector.sign_in_started_at
    was_listed = connector.listed_at is not None and connector.listed_epoch == connector.epoch
    return AppState(
        connector_id=connector.pk,
        slug=connector.slug,
        name=connector.name,
        placements=standing.placements,
        status=standing.status,
        epoch=connector.epoch,
        advertises_facets=connector.advertises_facets,
        # A listing that failed is not on its way any more.
        is_listed=was_listed or connector.listing_failed_at is not None,
        facets=facets,
        sign_in_ends_at=started + SIGN_IN_LASTS if started else None,
    )


def _app(standing: Standing, app_href: Callable[[str], str]) -> App:
    route = standing.route
    icon = next((each.icon for each in standing.placements if each.icon), None)
    return App(
        label=standing.connector.name,
        icon=icon,
        href=app_href(route) if route else None,
        status=standing.status,
        status_label=standing.label,
        level=level_of(standing.status),
    )


def _line(standing: Standing, href: str) -> ConnectorLine:
    connector = standing.connector
    return ConnectorLine(
        name=connector.name,
        slug=connector.slug,
        href=href,
        status=standing.status,
        status_label=standing.label,
        level=level_of(standing.status),
        checked_at=connector.checked_at,
        latency_ms=connector.latency_ms,
    )


def _weight(standing: Standing) -> int:
    """The worst first; a connector at rest needs nobody, so it comes after the ready ones."""
    if standing.status is Status.AT_REST:
        return 4
    level = level_of(standing.status)
    return 3 if level is None else list(Level).index(level)


def _app_href(workspace: Workspace) -> Callable[[str], str]:
    # Resolved once: reversing a URL for each of 500 rows would cost more than reading them.
    base = reverse("overview:app", args=[workspace.slug, "-"])[: -len("-")]
    return lambda route: base + route


def _connector_href(workspace: Workspace) -> Callable[[str], str]:
    base = reverse("connectors:detail", args=[workspace.slug, "-"])[: -len("-/")]
    return lambda slug: f"{base}{slug}/"
