"""Signing in to a server: out to its authorization server, and back."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import cache_control, never_cache
from django.views.decorators.http import require_GET, require_safe

from connectors.models import Connector
from connectors.oauth import flow
from connectors.oauth.acts import take_pending
from connectors.oauth.metadata import Problem
from connectors.oauth.site import site_of
from connectors.queries import connector_of, standing_now
from connectors.status import Action, allowed
from connectors.views.waiting import waits_for_server
from workspaces.access import is_signed_in, require_admin
from workspaces.models import User
from workspaces.views.acts import act_only


@act_only
@never_cache
@waits_for_server
def begin(request: HttpRequest, slug: str, connector: str) -> HttpResponse:
    member = require_admin(request, slug)
    return _begin(request, connector_of(member.workspace, connector), member.user)


@act_only
@never_cache
@waits_for_server
def begin_personal(request: HttpRequest, connector: str) -> HttpResponse:
    # LoginRequiredMiddleware lets nobody else through.
    assert is_signed_in(request.user)
    return _begin(request, connector_of(request.user, connector), request.user)


def _begin(request: HttpRequest, connector: Connector, user: User) -> HttpResponse:
    standing = standing_now(connector, timezone.now())
    if not allowed(standing.status, Action.SIGN_IN):
        text = f"Nothing was changed: the status of {connector.name} is now “{standing.label}”."
        messages.info(request, text)
        return _to_page_of(connector)
    outcome = flow.begin(connector, site_of(request), by=user)
    if isinstance(outcome, Problem):
        messages.error(request, outcome.message)
        return _to_page_of(connector)
    context = {"connector": connector, "departure": outcome}
    response = render(request, "connectors/sign_in.html", context)
    # Not a redirect: a form may lead to no other site than this one (Content-Security-Policy,
    # form-action), and browsers apply that to where its answer redirects.
    response["Refresh"] = f"0; url={outcome.url}"
    return response


@require_GET
@never_cache
def callback(request: HttpRequest) -> HttpResponse:
    """Where the authorization server sends people back to. Which workspace it is about, and
    whether this person may change it, only the state tells."""
    user = request.user
    pending = None
    if is_signed_in(user):
        pending = take_pending(request.GET.get("state", ""), user, timezone.now())
    if pending is None:
        return render(request, "connectors/sign_in_over.html", status=400)
    connector = pending.connector
    if connector.workspace is not None:
        require_admin(request, connector.workspace.slug)
    problem = flow.finish(pending, request.GET.dict())
    if problem is None:
        messages.success(request, f"You are signed in to {connector.name}.")
    else:
        messages.error(request, problem.message)
    return _to_page_of(connector)


def _to_page_of(connector: Connector) -> HttpResponse:
    if connector.workspace is None:
        return redirect("connectors:personal")
    return redirect("connectors:detail", connector.workspace.slug, connector.slug)


@login_not_required
@require_safe
@cache_control(public=True, max_age=3600)
def client_metadata(request: HttpRequest) -> JsonResponse:
    """This site as an OAuth client, for authorization servers (Client ID Metadata Document)."""
    site = site_of(request)
    if site.document_url is None:
        raise Http404
    described = {"client_id": site.document_url, "token_endpoint_auth_method": "none"}
    return JsonResponse(described | site.metadata)
