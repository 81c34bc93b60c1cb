"""Signing in with a password or a link, and signing out."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login, logout
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_GET, require_http_methods

from workspaces.access import is_signed_in
from workspaces.actions import pages_look_again
from workspaces.forms import SignInForm
from workspaces.sign_in_links import claim_link
from workspaces.views.acts import act_only, page_of

PASSWORD_BACKEND = "django.contrib.auth.backends.ModelBackend"


@login_not_required
@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    onward = _own_path(request)
    if is_signed_in(request.user):
        return redirect(onward)
    is_sent = request.method == "POST"
    form = SignInForm(request, request.POST if is_sent else None)
    if is_sent and form.is_valid():
        login(request, form.user)
        return redirect(onward)
    return render(request, "workspaces/sign_in.html", {"form": form, "next": onward})


def _own_path(request: HttpRequest) -> str:
    """Where to go after signing in: a page of ours that was asked for, else the start page."""
    onward = request.POST.get("next") or request.GET.get("next") or "/"
    is_path = onward.startswith("/") and url_has_allowed_host_and_scheme(onward, None)
    return page_of(onward) if is_path else "/"


@login_not_required
@never_cache
@require_GET
@sensitive_variables("token")
def sign_in_link(request: HttpRequest, uid: str, token: str) -> HttpResponse:
    """Only GET: a HEAD that looks whether the link is alive must not use it up."""
    user = claim_link(uid, token)
    if user is None:
        minutes = settings.SIGN_IN_LINK_SECONDS // 60
        return render(request, "workspaces/link_used.html", {"minutes": minutes}, status=410)
    login(request, user, backend=PASSWORD_BACKEND)
    return redirect("/")


@login_not_required
@act_only
def sign_out(request: HttpRequest) -> HttpResponse:
    user = request.user
    logout(request)
    if is_signed_in(user):
        pages_look_again(user)
    messages.success(request, "You are signed out.")
    return redirect("workspaces:sign_in")
