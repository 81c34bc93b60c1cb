"""All rows of an embedded default's file, copied into the configured database at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.apps import apps
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.core.management.color import no_style
from django.db import DatabaseError, connection, connections, models, transaction
from django.db.migrations.recorder import MigrationRecorder

from connectors.errors import SecretUnreadable

ALIAS = "embedded"
BATCH = 200


class CannotMove(Exception):
    """Why nothing was copied, in words for operators."""


def move(source: Path, *, is_dry_run: bool) -> dict[str, int]:
    """Copy everything; how many rows of each table, by label.

    is_dry_run: everything is written and then taken back.
    Raises: CannotMove, after which the target is as it was.
    """
    _open(source)
    try:
        # One transaction over the source too: a host that still runs cannot write in between.
        with transaction.atomic(using=ALIAS), transaction.atomic():
            _compare_migrations()
            _empty_target()
            copied = {model._meta.label: _copy(model) for model in _tables()}
            _reset_sequences()
            connection.check_constraints()
            transaction.set_rollback(is_dry_run)
    finally:
        connections[ALIAS].close()
        del connections[ALIAS]
    return copied


def _open(source: Path) -> None:
    if not source.is_file():
        raise CannotMove(f"There is no file {source}.")
    sqlite = {"ENGINE": "django.db.backends.sqlite3", "NAME": source, "CONN_MAX_AGE": None}
    sqlite["OPTIONS"] = {"transaction_mode": "IMMEDIATE"}
    configured = connections.configure_settings(
        {"default": connection.settings_dict, ALIAS: sqlite}
    )
    connections.settings[ALIAS] = configured[ALIAS]


def _tables() -> list[type[models.Model]]:
    return [
        model
        for model in apps.get_models(include_auto_created=True)
        if model._meta.managed and not model._meta.proxy
    ]


def _compare_migrations() -> None:
    theirs = set(MigrationRecorder(connections[ALIAS]).applied_migrations())
    ours = set(MigrationRecorder(connection).applied_migrations())
    if theirs != ours:
        behind = "embedded default" if theirs < ours else "configured database"
        raise CannotMove(f"The {behind} is of another version: run `manage.py migrate` there.")


def _empty_target() -> None:
    """Take away what `migrate` itself wrote. Raises: CannotMove when there is anything else."""
    own: list[type[models.Model]] = [Permission, ContentType]
    for model in _tables():
        if model not in own and model._base_manager.exists():
            raise CannotMove(f"The configured database is in use: it has {model._meta.label}.")
    for model in own:
        model._base_manager.all().delete()


def _copy(model: type[models.Model]) -> int:
    count, batch = 0, []
    rows: Any = model._base_manager.using(ALIAS).order_by("pk").iterator(BATCH)
    try:
        for row in rows:
            batch.append(row)
            if len(batch) == BATCH:
                count += _insert(model, batch)
                batch = []
        return count + _insert(model, batch)
    except SecretUnreadable as error:
        raise CannotMove(
            f"{error} Set SECRETS_KEYS to the keys of the embedded default."
        ) from error
    except DatabaseError as error:
        raise CannotMove(f"A row of {model._meta.label} does not fit: {error}") from error


def _insert(model: type[models.Model], rows: list[models.Model]) -> int:
    if rows:
        # Raw, as fixtures are loaded: `auto_now` and the like must not touch what was stored.
        # bulk_create has no such option.
        insert = model._base_manager.all()._insert  # type: ignore[attr-defined]
        insert(rows, fields=model._meta.concrete_fields, using="default", raw=True)
    return len(rows)


def _reset_sequences() -> None:
    statements = connection.ops.sequence_reset_sql(no_style(), _tables())
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
