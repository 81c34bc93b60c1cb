"""`manage.py sign-in-link EMAIL`: a link that signs a person in once."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from workspaces.command_line import person_named, refuse_unstorable
from workspaces.sign_in_links import sign_in_path


class Command(BaseCommand):
    help = "Print a link that signs a person in once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email")
        parser.add_argument("--origin", default="", help="Put before it: https://overview.example")
        parser.add_argument("--json", action="store_true", help="Print one JSON object.")

    def handle(self, *args: Any, email: str, origin: str, **options: Any) -> None:
        refuse_unstorable({"email": email})
        user = person_named(email)
        if not user.is_active:
            raise CommandError(f"{email} may not sign in: the account is switched off.")
        if origin and urlsplit(origin).scheme not in ("http", "https"):
            raise CommandError("--origin starts with https:// or http://.")
        path = sign_in_path(user)
        link = origin.rstrip("/") + path
        seconds = settings.SIGN_IN_LINK_SECONDS
        if options["json"]:
            data = {"email": user.email, "path": path, "link": link, "works_seconds": seconds}
            self.stdout.write(json.dumps(data))
        else:
            self.stdout.write(f"{link}\nIt works once, for {seconds // 60} minutes.")
