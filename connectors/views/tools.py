"""Trying a tool: what the workspace's connectors offer, and a form to call one as oneself."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from django.core.cache import cache
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_http_methods, require_safe

from connectors.endpoint.catalogue import Catalogue
from connectors.endpoint.stored import catalogue_for
from connectors.models import ToolCall
from connectors.tool_forms import ToolForm
from connectors.tool_results import written
from connectors.trace_pages import calls_seen_by, event_lines
from connectors.trying import ToolPage, call_tool, tool_page, tools_on_offer
from connectors.views.waiting import waits_for_server
from workspaces.access import Member, workspace_for

MAX_TOOLS = 100
ONCE_SECONDS = 24 * 3600


@require_safe
@cache_control(private=True, no_cache=True)
def tools(request: HttpRequest, slug: str) -> HttpResponse:
    member = workspace_for(request, slug)
    words = request.GET.get("q", "").strip()[:100]
    left = MAX_TOOLS
    groups = []
    total = 0
    for offer, pages in tools_on_offer(_catalogue(member)):
        found = [each for each in pages if _matches(each, words)]
        total += len(found)
        if found[:left]:
            groups.append((offer, found[:left]))
        left -= len(found[:left])
    context = {
        "groups": groups,
        "words": words,
        "total": total,
        "left_out": max(0, total - MAX_TOOLS),
    }
    return render(request, "connectors/tools.html", context)


def _matches(page: ToolPage, words: str) -> bool:
    text = f"{page.name} {page.title} {page.description}".casefold()
    return all(word in text for word in words.casefold().split())


@require_http_methods(["GET", "HEAD", "POST"])
@cache_control(private=True, no_store=True)
@waits_for_server
def tool(request: HttpRequest, slug: str) -> HttpResponse:
    """The page of one tool (`?name=`). A POST calls it; one that may change things, when confirmed.

    The answer is part of the response and kept nowhere: there is no address that leads back to it.
    """
    member = workspace_for(request, slug)
    catalogue = _catalogue(member)
    page = tool_page(catalogue, request.GET.get("name", ""))
    if page is None:
        raise Http404
    if request.method != "POST":
        return _page(request, page, ToolForm(schema=page.schema, once=uuid4()))
    form = ToolForm(request.POST, schema=page.schema)
    if "edit" in request.POST or page.why_not or not form.is_valid():
        return _page(request, page, form, status=200 if "edit" in request.POST else 422)
    if not page.is_read_only and "confirmed" not in request.POST:
        context = {"page": page, "form": form, "arguments": written(form.arguments())}
        return render(request, "connectors/confirm_call.html", context)
    return _called(request, member, catalogue, page, form)


def _called(
    request: HttpRequest, member: Member, catalogue: Catalogue, page: ToolPage, form: ToolForm
) -> HttpResponse:
    mark = f"tool-call:{member.user.pk}:{form.cleaned_data['once']}"
    fresh = ToolForm(_renewed(request), schema=page.schema)
    if not cache.add(mark, 1, ONCE_SECONDS):
        # A second click, or the page loaded again.
        return _page(request, page, fresh, is_repeated=True)
    answer, trace = call_tool(catalogue, page, form.arguments())
    call = calls_seen_by(member).filter(pk=trace.id).first()
    return _page(request, page, fresh, answer=answer, trace_id=trace.id, **_trace_context(call))


def _renewed(request: HttpRequest) -> Any:
    """What was entered, for another call."""
    entered = request.POST.copy()
    entered["once"] = str(uuid4())
    return entered


def _trace_context(call: ToolCall | None) -> dict[str, Any]:
    if call is None:
        return {}
    return {
        "call": call,
        "milliseconds": call.started_at.microsecond // 1000,
        "lines": event_lines(call),
    }


def _page(
    request: HttpRequest, page: ToolPage, form: ToolForm, *, status: int = 200, **context: Any
) -> HttpResponse:
    context |= {"page": page, "form": form}
    return render(request, "connectors/tool.html", context, status=status)


def _catalogue(member: Member) -> Catalogue:
    return catalogue_for(member.workspace, member.user, timezone.now())
