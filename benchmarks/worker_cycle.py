"""One round of the worker over a workspace, for `benchmarks.growth`: its sweep, its reads and its
checks."""

from __future__ import annotations

import time
from dataclasses import dataclass

from benchmarks.peers import peers


@dataclass(frozen=True, slots=True)
class Cycle:
    """task_sql: the statements of each task that reads; check_sql: of each that checks.

    check_cpu_ms: of the whole process for one connector, the asking included.
    """

    sweep_sql: int
    sweep_ms: float
    task_sql: list[int]
    reads_ms: float
    unread: int
    check_sql: list[int]
    check_cpu_ms: float


def cycle_of(slug: str) -> Cycle:
    """All counts of the workspace are due, and its servers answer at once."""
    from connectors.models import Connector
    from connectors.runtime import close_runtime

    with peers(latency_ms=0) as base:
        connectors = list(Connector.objects.filter(workspace__slug=slug))
        for connector in connectors:
            connector.url = f"{base}/{connector.slug.removeprefix('server-')}/mcp"
        Connector.objects.bulk_update(connectors, ["url"], 500)
        _round(slug)  # Everything is connected from here on, as in mid-life.
        cycle = _round(slug)
        close_runtime()
    assert not cycle.unread, f"{cycle.unread} facets of {slug} were not read"
    return cycle


def _round(slug: str) -> Cycle:
    from django.db import connection
    from django.db.models import Q
    from django.test.utils import CaptureQueriesContext
    from django.utils import timezone

    from connectors.models import Listing
    from overview.due import due_at_pace
    from overview.models import StoredFacet
    from overview.refresh import refresh
    from overview.tasks import GROUP_SIZE

    facets = StoredFacet.objects.filter(connector__workspace__slug=slug)
    facets.update(read_at=None, failed_at=None)
    # Only counts are due, however long the filling took.
    listings = Listing.objects.filter(connector__workspace__slug=slug)
    listings.update(taken_at=timezone.now())
    begun = time.perf_counter()
    with CaptureQueriesContext(connection) as captured:
        due = due_at_pace(Q(workspace__slug=slug), timezone.now())
    sweep_sql, sweep_ms = len(captured), (time.perf_counter() - begun) * 1000
    task_sql, begun = [], time.perf_counter()
    for start in range(0, len(due), GROUP_SIZE):
        with CaptureQueriesContext(connection) as captured:
            refresh(due[start : start + GROUP_SIZE])
        task_sql.append(len(captured))
    reads_ms = (time.perf_counter() - begun) * 1000
    unread = facets.filter(read_at=None).count()
    return Cycle(sweep_sql, sweep_ms, task_sql, reads_ms, unread, *_checks(slug))


def _checks(slug: str) -> tuple[list[int], float]:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext
    from django.utils import timezone

    from connectors.models import Check, Connector
    from connectors.tasks import GROUP_SIZE, check_connectors

    connectors = Connector.objects.filter(workspace__slug=slug)
    connectors.update(check_due_at=timezone.now())
    ids = list(connectors.values_list("pk", flat=True))
    made, statements, begun = Check.objects.count(), [], time.process_time()
    for start in range(0, len(ids), GROUP_SIZE):
        with CaptureQueriesContext(connection) as captured:
            check_connectors(ids[start : start + GROUP_SIZE])
        statements.append(len(captured))
    cpu_ms = (time.process_time() - begun) * 1000 / len(ids)
    assert Check.objects.count() == made + len(ids), f"not all of {slug} were checked"
    return statements, cpu_ms
