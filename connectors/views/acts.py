"""Connect, reconnect, disconnect, cancel and check: one button each, then back to the connector."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone

from connectors.actions import (
    cancel_connector,
    check_by_hand,
    connect_connector,
    disconnect_connector,
)
from connectors.models import Connector
from connectors.queries import connector_of, standing_now
from connectors.status import Action, allowed, needs_admin
from workspaces.access import require_admin, workspace_for
from workspaces.models import User
from workspaces.views.acts import act_only


@dataclass(frozen=True, slots=True)
class _Act:
    do: Callable[[Connector, User], None]
    # What is said afterwards, behind the connector's name, and more for one of a workspace.
    said: str
    also: str = ""


_ACTS = {
    Action.CONNECT: _Act(lambda each, by: connect_connector(each, by=by), "is connecting."),
    Action.RECONNECT: _Act(lambda each, by: connect_connector(each, by=by), "is reconnecting."),
    Action.DISCONNECT: _Act(
        lambda each, by: disconnect_connector(each, by=by),
        "is disconnected.",
        " Its rows have left the overview.",
    ),
    Action.CANCEL: _Act(
        lambda each, by: cancel_connector(each, by=by), "is no longer being connected."
    ),
    Action.CHECK: _Act(lambda each, by: check_by_hand(each, by=by), "is being checked."),
}


@act_only
def connect(request: HttpRequest, slug: str, connector: str) -> HttpResponse:
    return _act(request, slug, connector, Action.CONNECT)


@act_only
def reconnect(request: HttpRequest, slug: str, connector: str) -> HttpResponse:
    return _act(request, slug, connector, Action.RECONNECT)


@act_only
def disconnect(request: HttpRequest, slug: str, connector: str) -> HttpResponse:
    return _act(request, slug, connector, Action.DISCONNECT)


@act_only
def cancel(request: HttpRequest, slug: str, connector: str) -> HttpResponse:
    return _act(request, slug, connector, Action.CANCEL)


@act_only
def check(request: HttpRequest, slug: str, connector: str) -> HttpResponse:
    return _act(request, slug, connector, Action.CHECK)


def _act(request: HttpRequest, slug: str, connector_slug: str, action: Action) -> HttpResponse:
    access = require_admin if needs_admin(action) else workspace_for
    member = access(request, slug)
    act_on(request, connector_of(member.workspace, connector_slug), action, by=member.user)
    return redirect("connectors:detail", slug, connector_slug)


def act_on(request: HttpRequest, connector: Connector, action: Action, *, by: User) -> None:
    """Do it where the connector's status allows it, and say what came of it."""
    standing = standing_now(connector, timezone.now())
    if allowed(standing.status, action):
        act = _ACTS[action]
        act.do(connector, by)
        also = "" if connector.is_personal else act.also
        messages.success(request, f"{connector.name} {act.said}{also}")
    else:
        # Somebody else, or the same person's first click, was quicker.
        text = f"Nothing was changed: the status of {connector.name} is now “{standing.label}”."
        messages.info(request, text)
