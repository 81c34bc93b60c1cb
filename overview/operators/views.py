"""The operators' page, for staff alone. For everybody else there is no such page."""

from __future__ import annotations

import csv
from collections.abc import Iterable

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from connectors.status import Status, label_of
from overview.operators.waiting import Waiting, waiting_connectors
from workspaces.access import is_signed_in

PAGE = 100
_SHOWN = [
    Status.FAILED,
    Status.RECONNECTION_NEEDED,
    Status.CONFIGURATION_REQUIRED,
    Status.CONNECTING,
    Status.STARTING,
]


@require_safe
@never_cache
def connectors(request: HttpRequest) -> HttpResponse:
    if not (is_signed_in(request.user) and request.user.is_staff):
        raise Http404
    now = timezone.now()
    chosen, words = request.GET.get("status", ""), request.GET.get("q", "").strip()[:100]
    found = [each for each in waiting_connectors(now) if each.matches(words)]
    shown = [each for each in found if chosen in ("", each.status.value)]
    if request.GET.get("format") == "csv":
        return _csv(shown)
    kinds = [each.status for each in found]
    context = {
        "page": Paginator(shown, PAGE).get_page(request.GET.get("page")),
        "filters": [
            {"value": each.value, "label": label_of(each), "count": kinds.count(each)}
            for each in _SHOWN
            if each in kinds or each.value == chosen
        ],
        "total": len(found),
        "chosen": chosen,
        "words": words,
        "query": urlencode({"status": chosen, "q": words}),
    }
    return render(request, "operators/connectors.html", context)


def _csv(rows: Iterable[Waiting]) -> HttpResponse:
    disposition = 'attachment; filename="connectors-not-ready.csv"'
    response = HttpResponse(
        content_type="text/csv; charset=utf-8", headers={"Content-Disposition": disposition}
    )
    lines = csv.writer(response)
    lines.writerow(["workspace", "connector", "name", "server", "status", "since", "reason"])
    for each in rows:
        since = each.since.isoformat(timespec="seconds")
        text = [each.workspace, each.slug, each.name, each.server, each.status.value]
        lines.writerow([*map(_as_text, text), since, _as_text(each.reason)])
    return response


def _as_text(cell: str) -> str:
    """A spreadsheet takes these for formulas, and some of the words come from members."""
    return f"'{cell}" if cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell
