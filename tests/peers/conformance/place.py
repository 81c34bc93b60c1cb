"""The product for one run of the suite: a site with a database of its own, and what is in it.

`settle` has to come before anything of Django's is imported, and is called once per process.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DATABASE = "db.sqlite3"
SLUG = "conformance"


def settle(directory: Path, database: Path | None = None) -> None:
    """Set Django up in a directory, with an empty database. database: one that is migrated."""
    for name in ("DATABASE_URL", "REDIS_URL", "SITE_URL"):
        os.environ.pop(name, None)
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "overview.settings",
        "VAR_DIR": str(directory),
        "DEMO": "1",  # Connectors may reach this machine.
    }
    import django

    django.setup()
    if database is None:
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
    else:
        shutil.copy(database, directory / DATABASE)


def workspace():
    """A new workspace and its admin."""
    from workspaces.actions import create_workspace
    from workspaces.models import User

    admin = User.objects.create_user("admin@example.com", None, name="Admin")
    return create_workspace(SLUG, "Conformance", admin=admin), admin


@contextmanager
def endpoint() -> Iterator[str]:
    """The address of an endpoint with the fixture behind it, which needs no credential."""
    from overview.asgi import application
    from tests.connectors.outside import Outside, connect, serve, token_for
    from tests.peers.conformance.shim import Shim
    from tests.servers import everything
    from tests.servers.sdk import sdk_server

    acme, admin = workspace()
    token = token_for(acme, admin)
    shim = Shim(application, token, "everything__")
    with sdk_server(everything.build_server()) as fixture, serve(shim) as site:
        Outside(site, SLUG, token).post()  # Resources are listed for endpoints that are in use.
        connect(acme, "everything", fixture, by=admin)
        yield f"{site}/mcp/{SLUG}"
