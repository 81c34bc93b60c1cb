"""A new version leaves the old version's processes working until they are restarted: with what it
does to the database, and with what they queue for each other."""

from __future__ import annotations

import inspect

import pytest
from django.db.migrations import (
    AddField,
    AddIndex,
    AlterField,
    CreateModel,
    DeleteModel,
    RemoveField,
    RenameField,
)
from django.db.migrations.loader import MigrationLoader
from django.db.models import NOT_PROVIDED, TextField

from overview import celery

APPS = ("connectors", "overview", "workspaces")
FIRST = "0001_initial"
# What the database knows nothing of.
WORDS = ("choices", "default", "help_text", "validators", "verbose_name", "error_messages")


@pytest.fixture(scope="module")
def loader():
    return MigrationLoader(None)


def later_migrations(loader):
    """Each but the first ones, with the state of the models before it."""
    for (app, name), migration in sorted(loader.disk_migrations.items()):
        if app in APPS and name != FIRST:
            state = loader.project_state((app, name), at_end=False)
            yield f"{app}.{name}", migration, state


def test_each_migration_only_adds(loader):
    """The old code neither sees a column or table vanish, nor writes rows without what the new
    one demands: a new column is null, or has a default that the database itself knows."""
    problems = [
        f"{name}: {operation.describe()}"
        for name, migration, state in later_migrations(loader)
        for operation in migration.operations
        if not _only_adds(operation, migration.app_label, state)
    ]
    assert problems == []


def _only_adds(operation, app, state):
    match operation:
        case CreateModel() | AddIndex():
            return True
        case AddField(field=field):
            return field.null or field.many_to_many or field.db_default is not NOT_PROVIDED
        case AlterField(field=field):
            model = state.models[app, operation.model_name_lower]
            return _in_database(field) == _in_database(model.fields[operation.name])
        case _:
            return False


def _in_database(field):
    _, path, arguments, options = field.deconstruct()
    return path, arguments, {key: value for key, value in options.items() if key not in WORDS}


@pytest.mark.parametrize(
    "operation",
    [
        AddField("connector", "more", TextField(default="")),
        AlterField("connector", "name", TextField()),
        DeleteModel("check"),
        RemoveField("connector", "name"),
        RenameField("connector", "name", "title"),
    ],
)
def test_what_the_old_version_would_not_survive_is_noticed(operation, loader):
    assert not _only_adds(operation, "connectors", loader.project_state())


@pytest.mark.parametrize(
    ("name", "argument"),
    [
        ("connectors.tasks.check_connector", 1),
        ("connectors.tasks.check_connectors", [1, 2]),
        ("connectors.tasks.list_connector", 1),
        ("connectors.tasks.list_connectors", [1, 2]),
        ("overview.tasks.refresh_connectors", [1, 2]),
        ("overview.tasks.refresh_workspace", 1),
    ],
)
def test_what_another_version_has_queued_is_understood(name, argument):
    """A name that only the new version knows is dropped by an old worker, so that it may be used
    for what a sweep queues again, and for nothing else."""
    celery.app.loader.import_default_modules()
    inspect.signature(celery.app.tasks[name].run).bind(argument)
