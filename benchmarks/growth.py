"""What an overview and the worker cost as a workspace grows: server time, SQL, bytes.

    .venv/bin/python -m benchmarks.growth

Workspaces of 10, 100 and 1 000 connectors with 5 facets each, of which 40 count something. The
worker's cycle is one sweep that finds all of them due, the reads that it queues, and the checks, by
hundreds of small servers that answer at once.
"""

from __future__ import annotations

import gzip

from benchmarks.database import temporary_database
from benchmarks.overview_page import served
from benchmarks.report import head, row
from benchmarks.worker_cycle import cycle_of

SIZES = (10, 100, 1000)
ABOVE_ZERO = 40
STATEMENTS, SWEEP_STATEMENTS, READ_STATEMENTS = 8, 4, 30
"""Of a page, of a sweep, and of one task that reads or checks up to 50 connectors: what it claims,
and what it keeps of each tenth of a second."""


def main() -> None:
    with temporary_database(settings="benchmarks.settings"):
        _measure()


def _measure() -> None:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    from benchmarks.filling import fill, signed_in

    client, cookie = signed_in()
    pages, statements, fragments = {}, {}, {}
    for size in SIZES:
        fill(f"of-{size}", connectors=size, facets=5, above_zero=ABOVE_ZERO)
        with CaptureQueriesContext(connection) as captured:
            pages[size] = client.get(f"/w/of-{size}/").content
        statements[size] = len(captured)
        fragments[size] = client.get(f"/w/of-{size}/panel/").content
    paths = {f"{kind}{size}": f"/w/of-{size}/{kind}" for size in SIZES for kind in ("", "panel/")}
    times = served(cookie, paths, rounds=40)
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
    cycles = {size: cycle_of(f"of-{size}") for size in SIZES}
    print(
        "| connectors | sweep: SQL | time | reads: tasks | SQL of a task | time of all, per facet "
        "| checks: SQL of a task | CPU of each |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for size, cycle in cycles.items():
        print(
            f"| {size} | {cycle.sweep_sql} | {cycle.sweep_ms:.1f} ms | {len(cycle.task_sql)} "
            f"| {max(cycle.task_sql)} at most | {cycle.reads_ms / size / 5:.2f} ms "
            f"| {max(cycle.check_sql)} at most | {cycle.check_cpu_ms:.2f} ms |"
        )
    print()
    head("10, 100 and 1 000 connectors")
    constant("SQL statements of a page", list(statements.values()), STATEMENTS)
    sweeps = [cycle.sweep_sql for cycle in cycles.values()]
    constant("SQL statements of a sweep", sweeps, SWEEP_STATEMENTS)
    most = max(max(cycle.task_sql + cycle.check_sql) for cycle in cycles.values())
    words = f"{most} at most"
    row("SQL statements of a task", words, f"{READ_STATEMENTS}", is_met=most <= READ_STATEMENTS)


def constant(name: str, numbers: list[int], at_most: int) -> None:
    is_met = len(set(numbers)) == 1 and numbers[0] <= at_most
    row(name, f"{max(numbers)} at most", f"{at_most}, the same for all", is_met=is_met)


if __name__ == "__main__":
    main()
