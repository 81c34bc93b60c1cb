"""The panel "Needs attention": which rows it has and in what order. Pure.

Source: Facets, "What the host does"; ui.md 2.1; decisions D-F5, D-F6, D-F11, D-F16.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from connectors.protocol.facets import Level
from connectors.protocol.freshness import Freshness, Policy, freshness_of
from connectors.protocol.placements import Placement, app_order_key, first_route
from connectors.status import Status, label_of, level_of

OLD_SECONDS: Final = 120
"""A count older than this says its age on the page."""

MAX_KEY_CHARS: Final = 120

_LEVEL_ORDER: Final = {level: place for place, level in enumerate(Level)}
_ICONS: Final = {
    Level.CRITICAL: "octagon-x",
    Level.WARNING: "triangle-alert",
    Level.INFO: "info",
}


@dataclass(frozen=True, slots=True)
class FacetReading:
    """A facet and what is stored of its last reads. count: decimal text, None if never read.

    Times and count are None when they belong to an earlier connection of the connector.
    """

    name: str
    title: str
    level: Level
    position: int
    count: str | None = None
    read_at: datetime | None = None
    failed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class AppState:
    """A connector as the panel needs it."""

    connector_id: int
    slug: str
    name: str
    placements: tuple[Placement, ...]
    status: Status
    epoch: int
    advertises_facets: bool
    is_listed: bool
    """Whether its facets have been listed since it became ready, even if there were none."""
    facets: tuple[FacetReading, ...] = ()
    sign_in_ends_at: datetime | None = None
    """When a sign-in under way counts as abandoned."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the panel."""

    key: str
    connector_id: int
    epoch: int
    level: Level
    count: str | None
    title: str
    app: str
    state: str
    """"ok", "unavailable", or for a connector that is not ready its status."""
    href: str | None
    counted_at: datetime | None = None
    is_old: bool = False

    @property
    def dom_id(self) -> str:
        return "row-" + hashlib.sha256(self.key.encode()).hexdigest()[:12]

    @property
    def is_unavailable(self) -> bool:
        return self.state == "unavailable"

    @property
    def is_status(self) -> bool:
        return self.state not in ("ok", "unavailable")

    @property
    def icon(self) -> str:
        """The name of its Lucide icon."""
        return "circle-question-mark" if self.is_unavailable else _ICONS[self.level]

    @property
    def level_word(self) -> str:
        return self.level.capitalize()


@dataclass(frozen=True, slots=True)
class Panel:
    """The rows in order. checking: connectors whose first readings are still on their way.

    until: when time alone changes it, if nothing else does: a count ends, a sign-in is abandoned.
    A page looks again then, for the worker that would read or push may be gone.
    """

    rows: tuple[Row, ...]
    checking: int
    version: int = field(default=0)
    until: datetime | None = None

    @property
    def is_empty(self) -> bool:
        return not self.rows


@dataclass(frozen=True, slots=True)
class Reading:
    """What a facet shows now. state: "ok", "zero", "unavailable" or "checking"."""

    state: str
    count: str | None = None
    counted_at: datetime | None = None
    is_old: bool = False


def reading_of(facet: FacetReading, now: datetime, policy: Policy) -> Reading:
    """What a facet shows at this moment, from what is stored.

    A count is served to its maximum age whatever failed since. After that, a failure that is not
    older than the maximum age, and so newer than the count, says "unavailable"; nothing known is
    still being checked.
    """
    freshness = freshness_of(facet.read_at, now, policy)
    if facet.count is not None and freshness in (Freshness.FRESH, Freshness.STALE):
        age_seconds = (now - facet.read_at).total_seconds() if facet.read_at else 0
        state = "zero" if facet.count == "0" else "ok"
        return Reading(state, facet.count, facet.read_at, age_seconds > OLD_SECONDS)
    is_recent = freshness_of(facet.failed_at, now, policy) in (Freshness.FRESH, Freshness.STALE)
    return Reading("unavailable" if is_recent else "checking")


def row_key(connector_id: int, name: str) -> str:
    """The identity of a facet's row: connector and facet name (D-F10).

    A name that is long, or holds what an attribute or a storage key should not, is told by its
    digest instead.
    """
    if len(name) > MAX_KEY_CHARS or not name.isprintable() or name.startswith("sha256:"):
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
        name = f"sha256:{digest}"
    return f"{connector_id}/{name}"


def build_panel(
    apps: list[AppState],
    now: datetime,
    policy: Policy,
    *,
    app_href: Callable[[str], str],
    connector_href: Callable[[str], str],
    version: int = 0,
) -> Panel:
    """Build the panel of a workspace.

    app_href: route -> the page of the app with that placement. connector_href: slug -> its page.
    """
    rows: list[Row] = []
    checking = 0
    # The sort below is stable: inside a level the apps' order stays, inside an app the listing's.
    for app in sorted(apps, key=_app_order):
        if app.status is Status.READY:
            shown, is_checking = _facet_rows(app, now, policy, app_href)
            rows += shown
            checking += is_checking
        else:
            rows += _status_row(app, connector_href(app.slug))
    rows.sort(key=lambda row: _LEVEL_ORDER[row.level])
    max_age = timedelta(seconds=policy.max_age_seconds)
    ends = [row.counted_at + max_age for row in rows if row.counted_at]
    ends += [app.sign_in_ends_at for app in apps if app.sign_in_ends_at]
    until = min((end for end in ends if end > now), default=None)
    return Panel(tuple(rows), checking, version, until)


def _app_order(app: AppState) -> tuple[int, str, str, str]:
    return app_order_key(app.placements, app.name, app.slug)


def _status_row(app: AppState, href: str) -> Iterator[Row]:
    level = level_of(app.status)
    if level is not None:
        yield Row(
            key=str(app.connector_id),
            connector_id=app.connector_id,
            epoch=app.epoch,
            level=level,
            count=None,
            title=label_of(app.status),
            app=app.name,
            state=app.status.value,
            href=href,
        )


def _facet_rows(
    app: AppState, now: datetime, policy: Policy, app_href: Callable[[str], str]
) -> tuple[list[Row], bool]:
    if not app.advertises_facets:
        return [], False
    route = first_route(app.placements)
    rows = []
    is_checking = not app.is_listed
    for facet in sorted(app.facets, key=lambda facet: facet.position):
        reading = reading_of(facet, now, policy)
        is_checking = is_checking or reading.state == "checking"
        if reading.state in ("ok", "unavailable"):
            rows.append(
                Row(
                    key=row_key(app.connector_id, facet.name),
                    connector_id=app.connector_id,
                    epoch=app.epoch,
                    level=facet.level,
                    count=reading.count,
                    title=facet.title,
                    app=app.name,
                    state=reading.state,
                    href=app_href(route) if route else None,
                    counted_at=reading.counted_at,
                    is_old=reading.is_old,
                )
            )
    return rows, is_checking
