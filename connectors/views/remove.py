"""The page that removes a connector: it says what is lost, and wants the name typed."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from connectors.actions import remove_connector
from connectors.forms import RemoveForm
from connectors.inspection import losses_of
from connectors.queries import connector_of
from workspaces.access import require_admin


@require_http_methods(["GET", "HEAD", "POST"])
def remove(request: HttpRequest, slug: str, connector: str) -> HttpResponse:
    member = require_admin(request, slug)
    found = connector_of(member.workspace, connector)
    form = RemoveForm(request.POST or None, name=found.name)
    if request.method == "POST" and form.is_valid():
        remove_connector(found, by=member.user)
        messages.success(request, f"{found.name} is removed.")
        return redirect("connectors:list", slug)
    context = {"connector": found, "form": form, "losses": losses_of(found)}
    return render(request, "connectors/remove.html", context)
