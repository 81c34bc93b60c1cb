"""What an overview costs as its workspace grows: server time, SQL, bytes.

    .venv/bin/python -m benchmarks.growth

Workspaces of 10, 100 and 1 000 connectors with 5 facets each, of which 40 count something.
"""

from __future__ import annotations

import gzip

from benchmarks.database import temporary_database
from benchmarks.overview_page import served
from benchmarks.report import head, row

SIZES = (10, 100, 1000)
ABOVE_ZERO = 40
STATEMENTS = 8


def main() -> None:
    with temporary_database(settings="benchmarks.settings"):
        _measure()


def _measure() -> None:
    from django.conf import settings
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    from benchmarks.filling import fill, person

    settings.ALLOWED_HOSTS.append("testserver")
    client = Client()
    client.force_login(person(), backend="django.contrib.auth.backends.ModelBackend")
    pages, statements, fragments = {}, {}, {}
    for size in SIZES:
        fill(f"of-{size}", connectors=size, facets=5, above_zero=ABOVE_ZERO)
        with CaptureQueriesContext(connection) as captured:
            pages[size] = client.get(f"/w/of-{size}/").content
        statements[size] = len(captured)
        fragments[size] = client.get(f"/w/of-{size}/panel/").content
    cookie = f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"
    paths = {f"{kind}{size}": f"/w/of-{size}/{kind}" for size in SIZES for kind in ("", "panel/")}
    times = served(cookie, paths)
    print(
        "| connectors | SQL | page | compressed | server time | live fragment | its server time |"
    )
    print("|---|---|---|---|---|---|---|")
    for size in SIZES:
        page, fragment = pages[size], fragments[size]
        print(
            f"| {size} | {statements[size]} | {len(page) / 1024:.0f} KB "
            f"| {len(gzip.compress(page, 6)) / 1024:.1f} KB | {times[str(size)]:.1f} ms "
            f"| {len(fragment) / 1024:.0f} KB | {times[f'panel/{size}']:.1f} ms |"
        )
    print()
    head("the overview of 10, 100 and 1 000 connectors")
    most = max(statements.values())
    is_met = len(set(statements.values())) == 1 and most <= STATEMENTS
    row("SQL statements", f"{most} at most", f"{STATEMENTS}, the same for all", is_met=is_met)


if __name__ == "__main__":
    main()
