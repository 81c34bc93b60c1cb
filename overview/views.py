"""The overview's pages: the page, its live fragment, the same rows as JSON, and an app's page."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_GET

from overview.fragments import shown_of
from overview.panel import Row
from overview.queries import app_at, panel_of, rows_of
from overview.tasks import watch
from workspaces.access import is_signed_in, workspace_for
from workspaces.queries import workspaces_of


@require_GET
def home(request: HttpRequest) -> HttpResponse:
    assert is_signed_in(request.user)
    found = list(workspaces_of(request.user)[:2])
    if len(found) == 1:
        return redirect("overview:overview", found[0].slug)
    return redirect("workspaces:list")


@require_GET
@cache_control(private=True, no_cache=True)
def overview(request: HttpRequest, slug: str) -> HttpResponse:
    member = workspace_for(request, slug)
    watch(member.workspace)
    return render(request, "overview/overview.html", {"shown": shown_of(member.workspace)})


@require_GET
@login_not_required
@cache_control(private=True, no_cache=True)
def panel(request: HttpRequest, slug: str) -> HttpResponse:
    """The live fragment. Signed out is 401 here: a redirect would put the sign-in form into it."""
    if not is_signed_in(request.user):
        return HttpResponse(status=401)
    member = workspace_for(request, slug)
    watch(member.workspace)
    return HttpResponse(shown_of(member.workspace).panel)


@require_GET
@login_not_required
@cache_control(private=True, no_cache=True)
def attention(request: HttpRequest, slug: str) -> HttpResponse:
    """The same rows for members' scripts. Its shape is public: docs/operations.md."""
    if not is_signed_in(request.user):
        return JsonResponse({"error": "Sign in first."}, status=401)
    member = workspace_for(request, slug)
    watch(member.workspace)
    shown = panel_of(member.workspace, timezone.now())
    body = {"version": shown.version, "rows": [_json_of(row) for row in shown.rows]}
    return JsonResponse(body)


def _json_of(row: Row) -> dict[str, Any]:
    return {
        "key": row.key,
        "level": row.level.value,
        "count": row.count,
        "title": row.title,
        "app": row.app,
        "state": row.state,
        "href": row.href,
        "counted_at": row.counted_at.isoformat() if row.counted_at else None,
    }


@require_GET
def app(request: HttpRequest, slug: str, route: str) -> HttpResponse:
    member = workspace_for(request, slug)
    now = timezone.now()
    standing = app_at(member.workspace, route, now)
    if standing is None:
        raise Http404
    watch(member.workspace)
    shown = rows_of(member.workspace, standing, now)
    return render(request, "overview/app.html", {"standing": standing, "panel": shown})
