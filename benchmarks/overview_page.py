"""The overview of 50 connectors with 5 facets each, 60 of them above zero: bytes, SQL, time.

    .venv/bin/python -m benchmarks.overview_page

The time is a ratio in one run: the page against an empty page of the same stack (same middleware,
session, membership and shell, nothing inside).
"""

from __future__ import annotations

import gzip
import statistics
import time

from benchmarks.database import temporary_database


def main() -> None:
    with temporary_database():
        _measure()


def _measure() -> None:
    from django.conf import settings
    from django.db import connection
    from django.shortcuts import render
    from django.test import Client
    from django.test.utils import CaptureQueriesContext
    from django.urls import path

    from benchmarks.filling import fill, person
    from overview import urls
    from workspaces.access import workspace_for

    def empty(request, slug):
        workspace_for(request, slug)
        return render(request, "base.html")

    urls.urlpatterns.append(path("w/<slug:slug>/empty/", empty))
    settings.ALLOWED_HOSTS.append("testserver")
    client = Client()
    client.force_login(person(), backend="django.contrib.auth.backends.ModelBackend")
    statements = {}
    for connectors in (5, 50, 500):
        fill(f"of-{connectors}", connectors=connectors, facets=5, above_zero=60)
        with CaptureQueriesContext(connection) as captured:
            page = client.get(f"/w/of-{connectors}/")
        assert page.status_code == 200
        statements[connectors] = len(captured)
    page = client.get("/w/of-50/").content
    assert page.count(b"data-row ") == 60
    times: dict[str, list[float]] = {"overview": [], "empty": []}
    for _ in range(200):
        for name, url in (("overview", "/w/of-50/"), ("empty", "/w/of-50/empty/")):
            started = time.process_time()
            client.get(url)
            times[name].append(time.process_time() - started)
    medians = {name: statistics.median(seconds) * 1000 for name, seconds in times.items()}
    print("| overview, 50 connectors x 5 facets, 60 rows | measured | at most |")
    print("|---|---|---|")
    print(f"| HTML | {len(page) / 1024:.1f} KB | 60 KB |")
    print(f"| compressed | {len(gzip.compress(page, 6)) / 1024:.1f} KB | 15 KB |")
    shown = ", ".join(f"{number} at {size} connectors" for size, number in statements.items())
    print(f"| SQL statements | {shown} | 8, constant |")
    ratio = medians["overview"] / medians["empty"]
    print(
        f"| CPU against an empty page | {medians['overview']:.1f} ms / {medians['empty']:.1f} ms"
        f" = {ratio:.2f} | 3 |"
    )


if __name__ == "__main__":
    main()
