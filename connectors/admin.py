"""Connectors in Django's admin, to look at: what changes them has rules, and lives in `actions`."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest

from connectors.models import Connector


@admin.register(Connector)
class ConnectorAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ("name", "workspace", "owner", "transport", "connection", "checked_at")
    list_filter = ("transport", "connection")
    list_select_related = ("workspace", "owner")
    search_fields = ("name", "slug", "workspace__slug", "workspace__name", "owner__email")
    # What a server said of itself can be long and is shown nowhere.
    exclude = ("capabilities", "discovery")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Connector | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Connector | None = None) -> bool:
        return False
