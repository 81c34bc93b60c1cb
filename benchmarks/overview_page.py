"""The overview of 50 connectors with 5 facets each, 60 of them above zero: bytes, SQL, time.

    .venv/bin/python -m benchmarks.overview_page

The time is a ratio in one run, over HTTP from the real ASGI server: the page against an empty page
of the same stack (same middleware, session, membership and shell, nothing inside).
"""

from __future__ import annotations

import gzip
import http.client
import socket
import statistics
import subprocess
import sys
import time

from benchmarks.database import temporary_database
from benchmarks.report import head, row

ROUNDS = 200


def main() -> None:
    with temporary_database(settings="benchmarks.settings"):
        _measure()


def _measure() -> None:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    from benchmarks.filling import fill, signed_in

    client, cookie = signed_in()
    statements = {}
    for connectors in (5, 50, 500):
        fill(f"of-{connectors}", connectors=connectors, facets=5, above_zero=60)
        with CaptureQueriesContext(connection) as captured:
            page = client.get(f"/w/of-{connectors}/")
        assert page.status_code == 200
        statements[connectors] = len(captured)
    page = client.get("/w/of-50/").content
    assert page.count(b"data-row ") == 60
    medians = served(cookie, {"overview": "/w/of-50/", "empty": "/w/of-50/empty/"})
    head("overview, 50 connectors x 5 facets, 60 rows")
    plain, packed = len(page) / 1024, len(gzip.compress(page, 6)) / 1024
    row("HTML", f"{plain:.1f} KB", "60 KB", is_met=plain <= 60)
    row("compressed", f"{packed:.1f} KB", "15 KB", is_met=packed <= 15)
    shown = ", ".join(f"{number} at {size} connectors" for size, number in statements.items())
    is_constant = len(set(statements.values())) == 1 and statements[50] <= 8
    row("SQL statements", shown, "8, constant", is_met=is_constant)
    ratio = medians["overview"] / medians["empty"]
    words = f"{medians['overview']:.1f} ms / {medians['empty']:.1f} ms = {ratio:.2f}"
    row("server time against an empty page", words, "3", is_met=ratio <= 3)


def served(cookie: str, paths: dict[str, str], rounds: int = ROUNDS) -> dict[str, float]:
    """Median milliseconds per request of each path, one after another, from a server process."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    words = ["-m", "uvicorn", "overview.asgi:application", "--port", str(port)]
    server = subprocess.Popen([sys.executable, *words, "--log-level", "critical"])
    try:
        peer = connected(port)
        times: dict[str, list[float]] = {name: [] for name in paths}
        for number in range(rounds + 10):
            for name, path in paths.items():
                started = time.perf_counter()
                peer.request("GET", path, headers={"cookie": cookie, "accept-encoding": "gzip"})
                answer = peer.getresponse()
                answer.read()
                assert answer.status == 200
                if number >= 10:
                    times[name].append(time.perf_counter() - started)
        return {name: statistics.median(seconds) * 1000 for name, seconds in times.items()}
    finally:
        server.terminate()
        server.wait()


def connected(port: int, seconds: float = 10) -> http.client.HTTPConnection:
    deadline = time.monotonic() + 60
    while True:
        try:
            peer = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)
            peer.connect()
            return peer
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


if __name__ == "__main__":
    main()
