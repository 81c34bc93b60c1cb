"""Encrypt every stored secret anew with the first of SECRETS_KEYS, so that older keys can go."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from connectors.actions import rotate_secrets


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true")

    def handle(self, **options: Any) -> None:
        rotated, unreadable = rotate_secrets()
        if options["json"]:
            self.stdout.write(json.dumps({"rotated": rotated, "unreadable": unreadable}))
        else:
            self.stdout.write(f"Encrypted {rotated} secrets with the first key.")
        if unreadable:
            raise CommandError(
                f"Not readable with any key, and left as they are: {', '.join(unreadable)}"
            )
