"""The page that walks the way to a connector's server and says where it ends."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_http_methods

from connectors.actions import audit
from connectors.diagnosis.shell import diagnose
from connectors.diagnosis.text import as_text
from connectors.queries import connector_of
from workspaces.access import require_admin


@require_http_methods(["GET", "HEAD", "POST"])
@cache_control(private=True, no_store=True)
def diagnosis(request: HttpRequest, slug: str, connector: str) -> HttpResponse:
    """A POST walks, and its answer is kept nowhere. Posted twice it walks twice and changes
    nothing; admins only, because each walk costs the server a dozen requests."""
    member = require_admin(request, slug)
    found = connector_of(member.workspace, connector)
    context: dict[str, object] = {"connector": found}
    if request.method == "POST":
        # It sends the connector's secrets.
        audit(found, "connector diagnosed", member.user)
        made = diagnose(found)
        context |= {"diagnosis": made, "text": as_text(made)}
    return render(request, "connectors/diagnosis.html", context)
