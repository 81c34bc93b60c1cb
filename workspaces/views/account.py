"""A person's own account: the password they sign in with."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.forms import PasswordChangeForm, SetPasswordForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from workspaces.access import is_signed_in
from workspaces.models import User

_REQUIRED = {
    "old_password": "Enter your old password.",
    "new_password1": "Enter a new password.",
    "new_password2": "Enter the new password once more.",
}


@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
def account(request: HttpRequest) -> HttpResponse:
    """Set or change the password. Other browsers are signed out, this one stays."""
    assert is_signed_in(request.user)
    has_password = request.user.has_usable_password()
    make: type[SetPasswordForm[User]] = PasswordChangeForm if has_password else SetPasswordForm
    form = make(request.user, request.POST if request.method == "POST" else None)
    for name, field in form.fields.items():
        field.error_messages["required"] = _REQUIRED[name]
    if form.is_valid():
        form.save()
        update_session_auth_hash(request, request.user)
        messages.success(request, "Your password is saved. Other browsers are signed out.")
        return redirect("workspaces:account")
    context = {"form": form, "has_password": has_password}
    return render(request, "workspaces/account.html", context)
