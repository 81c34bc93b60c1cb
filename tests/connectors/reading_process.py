"""A process of the host that reads one resource: `python -m tests.connectors.reading_process`.

It says "ready", waits for a line, reads, and says what came of it as JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys

START_SECONDS = 30


@contextlib.contextmanager
def reading_process(connector):
    """Start one that is ready to read; on the database of the tests."""
    from django.db import connection

    database = {key: str(connection.settings_dict[key]) for key in ("NAME", "HOST", "PORT", "USER")}
    words = [sys.executable, "-m", "tests.connectors.reading_process"]
    with subprocess.Popen(
        [*words, str(connector.pk), json.dumps(database)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def begin(process):
    process.stdin.write("\n")
    process.stdin.flush()


def outcome_of(process):
    """The text that was read, or the fault: (kind, message)."""
    return json.loads(process.stdout.readline())


def main() -> None:
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "overview.settings")
    django.setup()
    from django.conf import settings
    from django.db import connection

    from connectors.models import Connector
    from connectors.runtime import close_runtime
    from connectors.sessions import Fault
    from tests.conftest import LOOPBACK
    from tests.connectors.signing_in import read

    connection.settings_dict.update(json.loads(sys.argv[2]))
    settings.CONNECTOR_ALLOWED_NETWORKS = LOOPBACK
    connector = Connector.objects.get(pk=int(sys.argv[1]))
    print("ready", flush=True)
    sys.stdin.readline()
    outcome = read(connector)
    said = (
        [outcome.kind, outcome.message]
        if isinstance(outcome, Fault)
        else outcome["contents"][0]["text"]
    )
    print(json.dumps(said), flush=True)
    close_runtime()


if __name__ == "__main__":
    main()
