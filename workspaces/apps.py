from typing import Any

from django.apps import AppConfig
from django.contrib.auth.signals import user_logged_in
from django.http import HttpRequest


class WorkspacesConfig(AppConfig):
    name = "workspaces"

    def ready(self) -> None:
        user_logged_in.connect(_record_sign_in)


def _record_sign_in(request: HttpRequest, user: Any, **_: Any) -> None:
    """By whichever page, the admin site's too."""
    from workspaces.actions import record_sign_in

    if (page := request.resolver_match) is not None:
        record_sign_in(user, is_by_link=page.view_name == "workspaces:sign_in_link")
