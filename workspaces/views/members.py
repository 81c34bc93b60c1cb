"""Who is in a workspace: everybody sees it, admins change it."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.html import format_html
from django.views.decorators.http import require_http_methods

from workspaces.access import require_admin, workspace_for
from workspaces.actions import LastAdmin, remove_member, set_membership
from workspaces.forms import AddMemberForm, RoleForm
from workspaces.models import Role
from workspaces.queries import membership_of, memberships_of, tokens_of

LAST_ADMIN = "This is the last admin. Make somebody else an admin first."


@require_http_methods(["GET", "HEAD", "POST"])
def members(request: HttpRequest, slug: str) -> HttpResponse:
    is_sent = request.method == "POST"
    viewer = (require_admin if is_sent else workspace_for)(request, slug)
    form = AddMemberForm(viewer, request.POST if is_sent else None)
    if is_sent and form.is_valid():
        role = Role(form.cleaned_data["role"])
        try:
            set_membership(viewer.workspace, form.user, role, by=viewer.user)
        except LastAdmin:
            form.add_error("email", LAST_ADMIN)
        else:
            messages.success(
                request,
                format_html("<bdi>{}</bdi> is in this workspace as {}.", form.user, role.label),
            )
            return redirect("workspaces:members", slug)
    context = {"memberships": memberships_of(viewer.workspace), "form": form}
    return render(request, "workspaces/members.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def member(request: HttpRequest, slug: str, user_id: int) -> HttpResponse:
    admin = require_admin(request, slug)
    membership = membership_of(admin.workspace, user_id)
    if membership is None:
        raise Http404
    is_sent = request.method == "POST"
    initial = {"role": membership.role}
    form = RoleForm(request.POST if is_sent else None, initial=initial)
    if is_sent and form.is_valid():
        try:
            set_membership(
                admin.workspace, membership.user, form.cleaned_data["role"], by=admin.user
            )
        except LastAdmin:
            form.add_error("role", LAST_ADMIN)
        else:
            label = Role(form.cleaned_data["role"]).label
            words = format_html("<bdi>{}</bdi> has the role {}.", membership.user, label)
            messages.success(request, words)
            return redirect("workspaces:members", slug)
    return render(request, "workspaces/member.html", {"person": membership.user, "form": form})


@require_http_methods(["GET", "HEAD", "POST"])
def remove(request: HttpRequest, slug: str, user_id: int) -> HttpResponse:
    """A page that says what is lost, and the act itself. Sent twice, the second changes nothing."""
    admin = require_admin(request, slug)
    membership = membership_of(admin.workspace, user_id)
    if membership is None:
        if request.method != "POST":
            raise Http404
        return redirect("workspaces:members", slug)
    person = membership.user
    context: dict[str, object] = {"person": person}
    if request.method == "POST":
        try:
            remove_member(admin.workspace, person, by=admin.user)
        except LastAdmin:
            context["error"] = LAST_ADMIN
        else:
            words = format_html("<bdi>{}</bdi> is no longer in this workspace.", person)
            messages.success(request, words)
            is_self = person == admin.user
            return redirect("/") if is_self else redirect("workspaces:members", slug)
    tokens = tokens_of(admin.workspace, person).filter(revoked_at__isnull=True)
    context["token_count"] = tokens.count()
    return render(request, "workspaces/remove_member.html", context)
