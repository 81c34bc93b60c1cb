"""The operator's pages: people, workspaces, memberships. Tokens are not here, nor their digests.

What changes a membership goes through `actions` as everywhere, so that it is audited, pushed, and
never takes a workspace's last admin.
"""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.forms import AdminUserCreationForm, UserChangeForm
from django.http import HttpRequest

from workspaces.actions import (
    pages_look_again,
    record_act,
    remove_member,
    set_membership,
    update_workspace,
)
from workspaces.models import Membership, Role, User, Workspace
from workspaces.queries import is_last_admin, person_at


class _Address(forms.ModelForm):  # type: ignore[type-arg]
    """Addresses are kept in lower case, and one account has one address in any case."""

    def clean_email(self) -> str:
        email = str(self.cleaned_data["email"]).strip().lower()
        found = person_at(email)
        if found is not None and found.pk != self.instance.pk:
            raise forms.ValidationError("Somebody has this email address already.")
        return email


class NewUserForm(_Address, AdminUserCreationForm):  # type: ignore[type-arg]
    class Meta:
        model = User
        fields = ("email", "name")


class ChangeUserForm(_Address, UserChangeForm):  # type: ignore[type-arg]
    class Meta:
        model = User
        fields = "__all__"  # noqa: DJ007  The admin shows the fields of `fieldsets` alone.


_RIGHTS = ("is_staff", "is_superuser", "groups")


def _is_superuser(request: HttpRequest) -> bool:
    return isinstance(request.user, User) and request.user.is_superuser


def _may_touch(request: HttpRequest, person: User | None) -> bool:
    """Operators are changed by superusers alone."""
    is_operator = person is not None and (person.is_staff or person.is_superuser)
    return not is_operator or _is_superuser(request)


@admin.register(User)
class PersonAdmin(UserAdmin):  # type: ignore[type-arg]
    form = ChangeUserForm
    add_form = NewUserForm
    ordering = ("email",)
    list_display = ("email", "name", "is_active", "is_staff", "last_login")
    list_filter = ("is_active", "is_staff", "is_superuser")
    search_fields = ("email", "name")
    readonly_fields = ("last_login", "joined_at")
    fieldsets = (
        (None, {"fields": ("email", "password", "name")}),
        ("Rights", {"fields": ("is_active", "is_staff", "is_superuser", "groups")}),
        ("Times", {"fields": ("last_login", "joined_at")}),
    )
    add_fieldsets = (
        (None, {"fields": ("email", "name", "usable_password", "password1", "password2")}),
    )
    filter_horizontal = ("groups",)

    # Django lets whoever may change people make anybody, themselves included, a superuser, and
    # set the password of one.

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        fields = tuple(super().get_readonly_fields(request, obj))
        return fields if _is_superuser(request) else (*fields, *_RIGHTS)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_change_permission(request, obj) and _may_touch(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) and _may_touch(request, obj)

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        pages_look_again(obj)


@admin.register(Workspace)
class WorkspaceAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    ordering = ("slug",)
    list_display = ("slug", "name", "created_at", "endpoint_used_at")
    search_fields = ("slug", "name")
    fields = ("slug", "name", "has_resource_tools", "created_at", "endpoint_used_at")
    readonly_fields = ("created_at", "endpoint_used_at")

    def save_model(self, request: HttpRequest, obj: Workspace, form: Any, change: bool) -> None:
        by = request.user if isinstance(request.user, User) else None
        if change:
            update_workspace(obj, name=obj.name, has_resource_tools=obj.has_resource_tools, by=by)
        super().save_model(request, obj, form, change)
        if not change:
            record_act(obj, "workspace created", obj.name, by=by)


class MembershipForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = Membership
        fields = ("workspace", "user", "role")

    def clean_role(self) -> str:
        role = str(self.cleaned_data["role"])
        if self.instance.pk and role != Role.ADMIN and is_last_admin(self.instance):
            raise forms.ValidationError("This is the last admin. Make somebody else one first.")
        return role


@admin.register(Membership)
class MembershipAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    form = MembershipForm
    list_display = ("user", "workspace", "role", "created_at")
    list_filter = ("role",)
    list_select_related = ("user", "workspace")
    search_fields = ("user__email", "user__name", "workspace__slug", "workspace__name")
    autocomplete_fields = ("workspace", "user")
    # Removing many at once would pass by the check for the last admin.
    actions = None

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return ("workspace", "user") if obj else ()

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        is_allowed = super().has_delete_permission(request, obj)
        return is_allowed and not (isinstance(obj, Membership) and is_last_admin(obj))

    def save_model(self, request: HttpRequest, obj: Membership, form: Any, change: bool) -> None:
        by = request.user if isinstance(request.user, User) else None
        made = set_membership(obj.workspace, obj.user, obj.role, by=by)
        obj.pk = made.pk

    def delete_model(self, request: HttpRequest, obj: Membership) -> None:
        by = request.user if isinstance(request.user, User) else None
        remove_member(obj.workspace, obj.user, by=by)
