"""Take an embedded default's data along to PostgreSQL.

Stop the embedded default first. Give this command the settings of the new host: DATABASE_URL, and
SECRET_KEY and SECRETS_KEYS out of the embedded default's folder, so that everybody stays signed in
and the secrets can be read:

    DATABASE_URL=postgresql://… SECRET_KEY_FILE=var/secret_key SECRETS_KEYS_FILE=var/secrets_keys \\
        manage.py move-to-postgres var/db.sqlite3
"""

from __future__ import annotations

from argparse import RawDescriptionHelpFormatter
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection

from overview.operators.moving import CannotMove, move


class Command(BaseCommand):
    help = __doc__

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        kwargs["formatter_class"] = RawDescriptionHelpFormatter
        return super().create_parser(prog_name, subcommand, **kwargs)

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("source", type=Path, help="The embedded default's db.sqlite3.")
        parser.add_argument("--dry-run", action="store_true", help="Try it, and keep nothing.")

    def handle(self, *, source: Path, dry_run: bool, **options: Any) -> None:
        if connection.vendor != "postgresql":
            raise CommandError("Set DATABASE_URL to the PostgreSQL database to move to.")
        try:
            copied = move(source, is_dry_run=dry_run)
        except CannotMove as error:
            raise CommandError(f"{error} Nothing was changed.") from error
        for label, rows in copied.items():
            if rows:
                self.stdout.write(f"{rows:>8}  {label}")
        total = sum(copied.values())
        done = "would be moved. Nothing was changed." if dry_run else "moved."
        self.stdout.write(f"{total:>8}  rows {done}")
