"""Tokens for outside agents, and where those connect."""

from __future__ import annotations

import json
from uuid import uuid4

from django.contrib import messages
from django.db import IntegrityError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.html import format_html
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods

from workspaces.access import Member, workspace_for
from workspaces.actions import create_token, revoke_token
from workspaces.forms import TokenForm
from workspaces.models import ApiToken, new_token, repeatable_token
from workspaces.queries import token_just_made, tokens_seen_by


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def tokens(request: HttpRequest, slug: str) -> HttpResponse:
    member = workspace_for(request, slug)
    is_sent = request.method == "POST"
    form = TokenForm(member, request.POST if is_sent else None)
    if is_sent and (answer := _created(request, member, form)):
        return answer
    context = {
        "form": form,
        "once": uuid4(),
        "tokens": tokens_seen_by(member),
        "now": timezone.now(),
        "endpoint": _endpoint(request, member),
        "example": _client_example(request, member, "YOUR_TOKEN"),
    }
    return render(request, "workspaces/tokens.html", context)


@sensitive_variables("text")
def _created(request: HttpRequest, member: Member, form: TokenForm) -> HttpResponse | None:
    """Answer the form itself with the token, shown this once; None when it is to be corrected.

    A redirect would have to keep the token somewhere, in the session's row or a cookie, and it is
    never stored. Browsers show the answer to the last of two clicks, so a form that comes twice at
    once is answered twice; later its name is taken, or it has been sent.
    """
    once = request.POST.get("once", "")
    text = repeatable_token(once, member.user, member.workspace) if once else new_token()
    token = _token(member, form, text) if form.is_valid() else None
    token = token or token_just_made(text, member, timezone.now())
    if token is None:
        return None
    context = {"token": token, "text": text, "example": _client_example(request, member, text)}
    return render(request, "workspaces/token_created.html", context)


@sensitive_variables("text")
def _token(member: Member, form: TokenForm, text: str) -> ApiToken | None:
    try:
        token, _ = create_token(
            member.workspace,
            member.user,
            form.cleaned_data["name"],
            allowed_tools=form.cleaned_data["tools"],
            expires_at=form.expires_at(timezone.now()),
            text=text,
        )
    except IntegrityError:
        form.add_error(None, "This form was sent already. Send it again to create another token.")
        return None
    return token


@require_http_methods(["GET", "HEAD", "POST"])
def revoke(request: HttpRequest, slug: str, token_id: int) -> HttpResponse:
    """A page that says what stops, and the act itself. Sent twice, the second changes nothing."""
    member = workspace_for(request, slug)
    token = tokens_seen_by(member).filter(pk=token_id).first()
    if token is None:
        if request.method != "POST":
            raise Http404
        return redirect("workspaces:tokens", slug)
    if request.method == "POST":
        revoke_token(token, by=member.user)
        messages.success(request, format_html("<bdi>{}</bdi> no longer works.", token.name))
        return redirect("workspaces:tokens", slug)
    return render(request, "workspaces/revoke_token.html", {"token": token})


def _endpoint(request: HttpRequest, member: Member) -> str:
    return request.build_absolute_uri(f"/mcp/{member.workspace.slug}")


def _client_example(request: HttpRequest, member: Member, token: str) -> str:
    """The file that most MCP clients read, with this workspace in it."""
    server = {
        "type": "http",
        "url": _endpoint(request, member),
        "headers": {"Authorization": f"Bearer {token}"},
    }
    return json.dumps({"mcpServers": {member.workspace.slug: server}}, indent=2)
