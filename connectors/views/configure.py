"""The page that changes a connector: its name, address, secrets and placements."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from connectors.actions import configure_connector
from connectors.queries import connector_of
from connectors.views.sheet import Sheet
from workspaces.access import require_admin


@require_http_methods(["GET", "HEAD", "POST"])
def configure(request: HttpRequest, slug: str, connector: str) -> HttpResponse:
    member = require_admin(request, slug)
    found = connector_of(member.workspace, connector)
    sheet = Sheet(member.workspace, request.POST or None, connector=found)
    if request.method == "POST" and sheet.is_valid():
        changed = sheet.filled_in()
        configure_connector(changed, sheet.new_secrets(), sheet.cleared(), by=member.user)
        messages.success(request, f"The settings of {changed.name} are saved.")
        return redirect("connectors:detail", slug, connector)
    context = {"connector": found, "sheet": sheet}
    return render(request, "connectors/configure.html", context)
