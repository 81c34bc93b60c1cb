"""The page that walks the way to a connector's server and says where it ends."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_http_methods

from connectors.actions import audit, check_soon, secrets_used
from connectors.diagnosis.shell import diagnose
from connectors.diagnosis.text import as_text
from connectors.diagnosis.values import Verdict
from connectors.models import Connector
from connectors.queries import connector_of
from connectors.status import Connection
from connectors.views.waiting import waits_for_server
from workspaces.access import is_signed_in, require_admin


@require_http_methods(["GET", "HEAD", "POST"])
@cache_control(private=True, no_store=True)
@waits_for_server
def diagnosis(request: HttpRequest, slug: str, connector: str) -> HttpResponse:
    """A POST walks, and its answer is kept nowhere. Posted twice it walks twice, and changes no
    more than a check does; admins only, because each walk costs the server a dozen requests."""
    member = require_admin(request, slug)
    found = connector_of(member.workspace, connector)
    if request.method == "POST":
        audit(found, "connector diagnosed", member.user, secrets_used(found))
    return _page(request, found)


@require_http_methods(["GET", "HEAD", "POST"])
@cache_control(private=True, no_store=True)
@waits_for_server
def personal_diagnosis(request: HttpRequest, connector: str) -> HttpResponse:
    """The same for a person's own connector, for that person alone."""
    # LoginRequiredMiddleware lets nobody else through.
    assert is_signed_in(request.user)
    return _page(request, connector_of(request.user, connector))


def _page(request: HttpRequest, connector: Connector) -> HttpResponse:
    context: dict[str, object] = {"connector": connector}
    if request.method == "POST":
        made = diagnose(connector)
        if made.verdict != Verdict.UNREACHABLE and connector.connection == Connection.FAILED:
            # The server is back: nobody should wait for the next attempt to see it.
            check_soon(connector.pk)
        context |= {"diagnosis": made, "text": as_text(made)}
    return render(request, "connectors/diagnosis.html", context)
