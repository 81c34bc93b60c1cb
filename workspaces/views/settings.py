"""A person's workspaces, and the settings of one: general, appearance, audit."""

from __future__ import annotations

import shlex

from django.conf import settings
from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from workspaces.access import is_signed_in, require_admin, workspace_for
from workspaces.actions import update_workspace
from workspaces.forms import AppearanceForm, GeneralForm
from workspaces.queries import audit_of, memberships_with_workspaces

AUDIT_PAGE = 50
THEME_COOKIE = "theme"
THEME_COOKIE_SECONDS = 365 * 24 * 3600


@require_safe
def workspaces(request: HttpRequest) -> HttpResponse:
    assert is_signed_in(request.user)
    email = shlex.quote(request.user.email)
    command = f"python manage.py workspace create acme --name Acme --admin {email}"
    context = {"memberships": memberships_with_workspaces(request.user), "command": command}
    return render(request, "workspaces/list.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def general(request: HttpRequest, slug: str) -> HttpResponse:
    is_sent = request.method == "POST"
    member = (require_admin if is_sent else workspace_for)(request, slug)
    workspace = member.workspace
    initial = {"name": workspace.name, "has_resource_tools": workspace.has_resource_tools}
    form = GeneralForm(request.POST if is_sent else None, initial=initial)
    if is_sent and form.is_valid():
        update_workspace(workspace, by=member.user, **form.cleaned_data)
        messages.success(request, "Settings are saved.")
        return redirect("workspaces:settings", slug)
    return render(request, "workspaces/general.html", {"form": form})


@require_http_methods(["GET", "HEAD", "POST"])
def appearance(request: HttpRequest, slug: str) -> HttpResponse:
    """Kept in a cookie, which the server reads: the page is never drawn in the other colours."""
    workspace_for(request, slug)
    is_sent = request.method == "POST"
    initial = {"theme": request.COOKIES.get(THEME_COOKIE, "system")}
    form = AppearanceForm(request.POST if is_sent else None, initial=initial)
    if not is_sent or not form.is_valid():
        return render(request, "workspaces/appearance.html", {"form": form})
    messages.success(request, "Appearance is saved in this browser.")
    response = redirect("workspaces:appearance", slug)
    response.set_cookie(
        THEME_COOKIE,
        form.cleaned_data["theme"],
        max_age=THEME_COOKIE_SECONDS,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )
    return response


@require_safe
def audit(request: HttpRequest, slug: str) -> HttpResponse:
    admin = require_admin(request, slug)
    page = Paginator(audit_of(admin.workspace), AUDIT_PAGE).get_page(request.GET.get("page"))
    return render(request, "workspaces/audit.html", {"page": page, "days": settings.AUDIT_DAYS})
