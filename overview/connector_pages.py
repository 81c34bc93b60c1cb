"""The two pages that show connectors and their facets; what changes connectors is in
`connectors/views/`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from connectors import inspection
from connectors.actions import secrets_used
from connectors.dated import Fact, dated_facts, last_call_at
from connectors.desk import overlapping_of, warning_of
from connectors.endpoint.stored import catalogue_for
from connectors.inputs import host_of
from connectors.latency import latency_plot
from connectors.models import Connector, Listing, ListingKind
from connectors.queries import Standing, connector_of, connectors_of, standing_now, standings
from connectors.status import Action, Status, label_of
from overview.connector_facets import FacetLine, facet_counts, facet_lines, skipped_lines
from overview.tasks import watch
from workspaces.access import Member, workspace_for
from workspaces.queries import admins_of

# The worst first. What is at rest on purpose needs nobody.
_WEIGHTS = (
    Status.FAILED,
    Status.RECONNECTION_NEEDED,
    Status.CONFIGURATION_REQUIRED,
    Status.CONNECTING,
    Status.STARTING,
    Status.READY,
    Status.AT_REST,
)
# The one button beside each connector of a list.
_MAIN_ACTIONS = {
    Status.RECONNECTION_NEEDED: (Action.RECONNECT, "Reconnect"),
    Status.CONFIGURATION_REQUIRED: (Action.CONFIGURE, "Configure"),
    Status.FAILED: (Action.RECONNECT, "Try again"),
    Status.AT_REST: (Action.CONNECT, "Connect"),
}


@dataclass(frozen=True, slots=True)
class Line:
    """A connector in the list."""

    standing: Standing
    address: str
    facet_count: int
    action: Action | None
    button: str

    @property
    def connector(self) -> Connector:
        return self.standing.connector


@require_safe
@cache_control(private=True, no_cache=True)
def connectors(request: HttpRequest, slug: str) -> HttpResponse:
    member = workspace_for(request, slug)
    now = timezone.now()
    rows = connectors_of(member.workspace).select_related("disconnected_by")
    found = standings(rows, now)
    chosen, words = request.GET.get("status", ""), request.GET.get("q", "").strip()[:100]
    found = [each for each in found if words.casefold() in each.connector.name.casefold()]
    shown = [each for each in found if chosen in ("", each.status.value)]
    shown.sort(key=lambda each: (_WEIGHTS.index(each.status), each.connector.name.casefold()))
    counts = facet_counts(member.workspace)
    context = {
        "lines": [_line(each, counts) for each in shown],
        "filters": _filters(found, chosen),
        "total": len(found),
        "chosen": chosen,
        "words": words,
        "admins": admins_of(member.workspace),
        "warned": warning_of(
            member.workspace, catalogue_for(member.workspace, member.user, now), now
        ),
    }
    return render(request, "connectors/list.html", context)


def _line(standing: Standing, counts: dict[int, int]) -> Line:
    connector = standing.connector
    action, button = _MAIN_ACTIONS.get(standing.status, (None, ""))
    address = connector.command or host_of(connector.url)
    return Line(standing, address, counts.get(connector.pk, 0), action, button)


def _filters(found: list[Standing], chosen: str) -> list[dict[str, Any]]:
    """The statuses that occur (and the one that is chosen), with how many there are of each."""
    kinds = [each.status for each in found]
    return [
        {"value": status.value, "label": label_of(status), "count": kinds.count(status)}
        for status in _WEIGHTS
        if status in kinds or status.value == chosen
    ]


@require_safe
@cache_control(private=True, no_cache=True)
def connector(request: HttpRequest, slug: str, connector: str) -> HttpResponse:
    member = workspace_for(request, slug)
    now = timezone.now()
    found = connector_of(member.workspace, connector)
    standing = standing_now(found, now)
    listings = inspection.listings_of(found)
    context = _facts(found, listings, now) | _acts(member, standing) | _facets(found, listings, now)
    context["known"] = _known(found, context)
    # Its counts are read while somebody looks at them here, as on the overview.
    watch(member.workspace)
    context |= {
        "standing": standing,
        "overlapping": overlapping_of(found, catalogue_for(member.workspace, member.user, now)),
        "is_pending": _is_pending(standing, listings, context["facets"], now),
        "state": _state(standing, listings, member.workspace.panel_version),
    }
    return render(request, "connectors/detail.html", context)


def _is_pending(
    standing: Standing, listings: dict[str, Listing], facets: list[FacetLine], now: datetime
) -> bool:
    """Whether an answer is on its way: the page's script asks for it until it is there."""
    connector = standing.connector
    if standing.status is Status.READY:
        unlisted = any(
            each.failed_at is None and (each.taken_at is None or each.epoch != connector.epoch)
            for each in listings.values()
            if each.kind != ListingKind.RESOURCES or connector.advertises_facets
        )
        if unlisted or any(each.reading.state == "checking" for each in facets):
            return True
    is_due = connector.check_due_at is not None and connector.check_due_at <= now
    return is_due or standing.status in (Status.CONNECTING, Status.STARTING)


def _state(standing: Standing, listings: dict[str, Listing], panel_version: int) -> str:
    """A text that changes with whatever may change the page while somebody waits for it."""
    connector = standing.connector
    times = [connector.checked_at]
    for listing in listings.values():
        times += [listing.taken_at, listing.failed_at]
    newest = max((each.timestamp() for each in times if each), default=0)
    return f"{standing.status} {connector.generation} {panel_version} {newest}"


def _facts(connector: Connector, listings: dict[str, Listing], now: datetime) -> dict[str, Any]:
    templates, tools = listings.get(ListingKind.TEMPLATES), listings.get(ListingKind.TOOLS)
    return {
        "connector": connector,
        "address": connector.command or host_of(connector.url),
        "grant": inspection.grant_of(connector),
        "last_check": inspection.last_check(connector),
        "plot": latency_plot(connector, now),
        "median_latency_ms": inspection.median_latency_ms(connector),
        "template_listing": templates,
        "templates": inspection.templates_in(templates),
        "tool_listing": tools,
        "tools": inspection.tools_in(tools),
        "calls": inspection.recent_calls(connector),
    }


def _known(connector: Connector, context: dict[str, Any]) -> list[Fact]:
    facets: list[FacetLine] = context["facets"]
    times = [at for each in facets for at in (each.reading.counted_at, each.failed_at)]
    times.append(last_call_at(connector, context["calls"]))
    return dated_facts(
        connector,
        is_credential_sent=bool(secrets_used(connector)),
        called_at=max((at for at in times if at), default=None),
    )


def _acts(member: Member, standing: Standing) -> dict[str, Any]:
    return {
        "problem": inspection.problem_of(standing),
        "admins": admins_of(member.workspace),
        "can": inspection.acts_offered(standing),
    }


def _facets(connector: Connector, listings: dict[str, Listing], now: datetime) -> dict[str, Any]:
    listing = listings.get(ListingKind.RESOURCES)
    return {
        "facet_listing": listing,
        "facets": facet_lines(connector, now),
        "skipped": skipped_lines(listing),
    }
