"""Run the demo's servers beside a host of several processes, until Ctrl-C.

`serve` brings them itself. They are connected to the workspace "demo", which the first run makes;
the host needs `CONNECTOR_ALLOWED_NETWORKS` (or `DEMO=1`) to reach them on this machine.
"""

from __future__ import annotations

import signal
import threading
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from overview.demo import Demo


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--site", default="", help="The site's address, for the printed link.")

    def handle(self, *, site: str, **options: Any) -> None:
        ended = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: ended.set())
        demo = Demo(settings.VAR_DIR)
        demo.start()
        try:
            for line in demo.notes:
                self.stdout.write(line)
            self.stdout.write(f"Open {site}{demo.sign_in_path()}")
            self.stdout.flush()
            ended.wait()
        finally:
            demo.stop()
