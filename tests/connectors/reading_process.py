"""A process of the host that reads one resource: `python -m tests.connectors.reading_process`.

It says "ready", waits for a line, reads, and says what came of it as JSON.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys

START_SECONDS = 30


@contextlib.contextmanager
def reading_process(connector, dies_at=""):
    """Start one that is ready to read; on the database of the tests.

    dies_at: "<module>.<function>": it kills itself where it would call that.
    """
    from django.db import connection

    database = {key: str(connection.settings_dict[key]) for key in ("NAME", "HOST", "PORT", "USER")}
    words = [sys.executable, "-m", "tests.connectors.reading_process"]
    with subprocess.Popen(
        [*words, str(connector.pk), json.dumps(database), dies_at],
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
    _die_at(sys.argv[3])
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


def _die_at(place: str) -> None:
    if not place:
        return
    module, _, name = place.rpartition(".")

    def die(*args: object, **kwargs: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(importlib.import_module(module), name, die)


if __name__ == "__main__":
    main()
