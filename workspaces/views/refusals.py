"""Pages that say no: not allowed, locked out, a form that cannot be trusted, an error of ours.

Settings and `overview/urls.py` name them.
"""

from __future__ import annotations

import structlog
from axes.helpers import get_cool_off
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template import loader

from workspaces.access import AdminNeeded
from workspaces.forms import SignInForm
from workspaces.queries import admins_of


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """403. A member who is no admin reads who the admins are."""
    context = {}
    if isinstance(exception, AdminNeeded):
        context = {"admins": admins_of(exception.member.workspace)}
    return render(request, "403.html", context, status=403)


@login_not_required
def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    return render(request, "workspaces/form_expired.html", status=403)


def locked_out(request: HttpRequest, *_: object) -> HttpResponse:
    """429, after too many wrong passwords for one address from one place.

    django-axes passes its arguments in another order under ASGI; none of them is needed. Each try
    during the lock starts it anew, so the wait is always the whole of it.
    """
    form = SignInForm(request, initial={"email": request.POST.get("email", "")[:254]})
    wait = get_cool_off(request)
    seconds = int(wait.total_seconds()) if wait else 0
    context = {"form": form, "wait_minutes": -(-seconds // 60), "next": request.POST.get("next")}
    response = render(request, "workspaces/sign_in.html", context, status=429)
    response["Retry-After"] = str(seconds)
    return response


def server_error(request: HttpRequest) -> HttpResponse:
    """500, with the number under which the log has it. Asks nothing of the database."""
    request_id = structlog.contextvars.get_contextvars().get("request_id", "")
    html = loader.render_to_string("500.html", {"request_id": request_id})
    return HttpResponse(html, status=500)
