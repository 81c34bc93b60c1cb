"""The ambiguity desk: which templates overlap, what would settle it, and who serves a given URI."""

from __future__ import annotations

from datetime import timedelta

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_http_methods

from connectors.actions import disconnect_connector
from connectors.desk import REFUSED_DAYS, Case, Side, desk_of
from connectors.desk_words import answer_of, served_by
from connectors.endpoint.stored import catalogue_for
from workspaces.access import require_admin, workspace_for

MAX_URI_CHARS = 2_000


@require_http_methods(["GET", "HEAD", "POST"])
@cache_control(private=True, no_cache=True)
def overlaps(request: HttpRequest, slug: str) -> HttpResponse:
    if request.method == "POST":
        return _settle(request, slug)
    member = workspace_for(request, slug)
    now = timezone.now()
    catalogue = catalogue_for(member.workspace, member.user, now)
    # Spaces around it come from copying; no URI has any.
    uri = request.GET.get("uri", "").strip()[:MAX_URI_CHARS]
    context = {
        "desk": desk_of(member.workspace, catalogue, now),
        "uri": uri,
        "answer": answer_of(uri, catalogue) if uri else None,
        "refused_days": REFUSED_DAYS,
        "refused_since": now - timedelta(days=REFUSED_DAYS),
    }
    return render(request, "connectors/overlaps.html", context)


def _settle(request: HttpRequest, slug: str) -> HttpResponse:
    """Disconnect one connector of an overlap, and say who serves its URIs now."""
    member = require_admin(request, slug)
    now = timezone.now()
    desk = desk_of(member.workspace, catalogue_for(member.workspace, member.user, now), now)
    found = _side(desk.cases, request.POST.get("uri", ""), request.POST.get("connector", ""))
    if found is None:
        messages.info(request, "Nothing was changed: this overlap is settled already.")
        return redirect("connectors:overlaps", slug)
    case, side = found
    disconnect_connector(side.connector, by=member.user)
    left = [each.offer for each in case.sides if each is not side]
    said = served_by(case.overlap, left, "is now served by", "still serve")
    messages.success(request, f"{side.connector.name} is disconnected. {said}")
    return redirect("connectors:overlaps", slug)


def _side(cases: list[Case], uri: str, connector: str) -> tuple[Case, Side] | None:
    for case in cases:
        for side in case.sides:
            if case.overlap.uri == uri and side.connector.slug == connector:
                return case, side
    return None
