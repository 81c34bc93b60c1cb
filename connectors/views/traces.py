"""The traces of a workspace's tool calls: the list, what is newer than it, and one trace."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from connectors.queries import connectors_of
from connectors.trace_filters import TraceFilters
from connectors.trace_pages import (
    MAX_NEWER,
    call_seen_by,
    calls_seen_by,
    event_lines,
    filtered,
    newer_than,
    page_of,
    parse_cursor,
)
from workspaces.access import Member, workspace_for


@require_safe
@cache_control(private=True, no_cache=True)
def traces(request: HttpRequest, slug: str) -> HttpResponse:
    member = workspace_for(request, slug)
    filters = _filters(request, member)
    calls = filtered(calls_seen_by(member), filters.cleaned_data)
    page = page_of(calls, parse_cursor(request.GET.get("before", "")))
    # The newest call that this reader has seen, kept while they go back in time.
    seen = parse_cursor(request.GET.get("seen", "")) or page.newest
    context = {"filters": filters, "page": page, "seen": seen}
    if seen is not None:
        context |= _newer(newer_than(calls, seen))
    return render(request, "connectors/traces.html", context)


@require_safe
@cache_control(private=True, no_cache=True)
def newer(request: HttpRequest, slug: str) -> HttpResponse:
    """The line that says how many calls are newer than the list: asked for by the list's script."""
    member = workspace_for(request, slug)
    filters = _filters(request, member)
    seen = parse_cursor(request.GET.get("seen", ""))
    calls = filtered(calls_seen_by(member), filters.cleaned_data)
    context: dict[str, Any] = {"filters": filters}
    if seen is not None:
        context |= _newer(newer_than(calls, seen))
    return render(request, "connectors/_newer.html", context)


@require_safe
@cache_control(private=True, no_cache=True)
def trace(request: HttpRequest, slug: str, trace: UUID) -> HttpResponse:
    member = workspace_for(request, slug)
    call = call_seen_by(member, trace)
    context = {
        "call": call,
        "milliseconds": call.started_at.microsecond // 1000,
        "lines": event_lines(call),
    }
    return render(request, "connectors/trace.html", context)


def _filters(request: HttpRequest, member: Member) -> TraceFilters:
    filters = TraceFilters(
        request.GET.dict(), connectors=connectors_of(member.workspace).order_by("name")
    )
    filters.is_valid()
    return filters


def _newer(count: int) -> dict[str, Any]:
    return {"newer": count, "newer_words": f"{MAX_NEWER}+" if count > MAX_NEWER else str(count)}
