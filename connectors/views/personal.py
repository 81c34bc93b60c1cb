"""A person's own connectors: tools for their agents alone, in every workspace that they are in.

They are of no workspace, so there is no member and no admin here: whoever is signed in sees and
changes their own, and everybody else's are not found.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_http_methods, require_safe

from connectors.actions import (
    add_connector,
    configure_connector,
    connect_connector,
    remove_connector,
)
from connectors.endpoint.catalogue import public_prefix
from connectors.forms import RemoveForm
from connectors.inputs import host_of
from connectors.inspection import Problem, acts_offered, losses_of, problem_of
from connectors.models import Connector, ListingKind
from connectors.queries import Standing, connector_of, connectors_of, free_slug, standings
from connectors.status import Action
from connectors.views.acts import act_on
from connectors.views.sheet import Sheet
from workspaces.access import is_signed_in
from workspaces.models import User
from workspaces.views.acts import act_only

MAX_CONNECTORS = 20
"""Of one person: each is checked and listed as long as it is connected."""


@dataclass(frozen=True, slots=True)
class Line:
    """One of the person's connectors. tool_count: None as long as its tools are not listed."""

    standing: Standing
    address: str
    prefix: str
    tool_count: int | None
    problem: Problem | None
    can: dict[str, bool]

    @property
    def connector(self) -> Connector:
        return self.standing.connector


@require_safe
@cache_control(private=True, no_cache=True)
def personal(request: HttpRequest) -> HttpResponse:
    user = _person(request)
    found = standings(connectors_of(user).prefetch_related("listings"), timezone.now())
    lines = [_line(each) for each in found]
    return render(request, "connectors/personal.html", {"lines": lines})


def _line(standing: Standing) -> Line:
    connector = standing.connector
    counts = [
        len(each.entries)
        for each in connector.listings.all()
        if each.kind == ListingKind.TOOLS and each.taken_at
    ]
    return Line(
        standing=standing,
        address=host_of(connector.url),
        prefix=public_prefix(connector.slug, is_personal=True),
        tool_count=counts[0] if counts else None,
        problem=problem_of(standing),
        can=acts_offered(standing),
    )


@require_http_methods(["GET", "HEAD", "POST"])
def add(request: HttpRequest) -> HttpResponse:
    user = _person(request)
    sheet = Sheet(user, request.POST if request.method == "POST" else None)
    if request.method == "POST" and sheet.is_valid() and (connector := _add(sheet, user)):
        connect_connector(connector, by=user)
        messages.success(request, f"{connector.name} is added and connecting.")
        return redirect("connectors:personal")
    return _page(request, sheet)


def _add(sheet: Sheet, user: User) -> Connector | None:
    if connectors_of(user).count() >= MAX_CONNECTORS:
        text = f"You have {MAX_CONNECTORS} connectors already: remove one first."
        sheet.main.add_error(None, text)
        return None
    connector = sheet.filled_in()
    connector.slug = free_slug(user, connector.name)
    try:
        return add_connector(connector, sheet.new_secrets(), by=user)
    except ValidationError as error:
        sheet.main.add_error(None, error.messages)
        return None


@require_http_methods(["GET", "HEAD", "POST"])
def configure(request: HttpRequest, connector: str) -> HttpResponse:
    user = _person(request)
    found = connector_of(user, connector)
    sheet = Sheet(user, request.POST if request.method == "POST" else None, connector=found)
    if request.method == "POST" and sheet.is_valid():
        changed = sheet.filled_in()
        configure_connector(changed, sheet.new_secrets(), sheet.cleared(), by=user)
        messages.success(request, f"The settings of {changed.name} are saved.")
        return redirect("connectors:personal")
    return _page(request, sheet, found)


def _page(request: HttpRequest, sheet: Sheet, found: Connector | None = None) -> HttpResponse:
    context = {"sheet": sheet, "connector": found}
    status = 422 if sheet.main.is_bound else 200
    return render(request, "connectors/personal_form.html", context, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
def remove(request: HttpRequest, connector: str) -> HttpResponse:
    user = _person(request)
    found = connector_of(user, connector)
    form = RemoveForm(request.POST if request.method == "POST" else None, name=found.name)
    if request.method == "POST" and form.is_valid():
        remove_connector(found, by=user)
        messages.success(request, f"{found.name} is removed.")
        return redirect("connectors:personal")
    context = {"connector": found, "form": form, "losses": losses_of(found)}
    status = 422 if form.is_bound else 200
    return render(request, "connectors/personal_remove.html", context, status=status)


@act_only
def act(request: HttpRequest, connector: str, action: Action) -> HttpResponse:
    user = _person(request)
    act_on(request, connector_of(user, connector), action, by=user)
    return redirect("connectors:personal")


def _person(request: HttpRequest) -> User:
    # LoginRequiredMiddleware lets nobody else through.
    assert is_signed_in(request.user)
    return request.user
