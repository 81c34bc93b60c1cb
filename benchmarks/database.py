"""A database and keys of a benchmark's own, gone when it ends."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator


@contextlib.contextmanager
def temporary_database(settings: str = "overview.settings") -> Iterator[str]:
    """Set Django up on an empty SQLite database in a temporary folder; its path."""
    from django.conf import settings as loaded

    # They would name another database, and what is filled in here would go there.
    assert not loaded.configured, "Django's settings were loaded before"
    directory = tempfile.mkdtemp(prefix="benchmark-")
    os.environ |= {
        "VAR_DIR": directory,
        "DEMO": "1",  # Lets connectors reach the benchmark's own servers on this machine.
        "LOG_LEVEL": "ERROR",
        "DJANGO_SETTINGS_MODULE": settings,
    }
    try:
        import django
        from django.core.management import call_command

        django.setup()
        call_command("migrate", verbosity=0, interactive=False)
        call_command("collectstatic", verbosity=0, interactive=False)
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)
