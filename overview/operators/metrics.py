"""What `/metrics` says, in Prometheus' text format: the tallies of all processes, and the database.

Blocking; run in a thread. No name, address or id of anything stands in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from django.db.models import Min, Q
from django.db.models.functions import Coalesce, Greatest
from django.utils import timezone
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4 as CONTENT_TYPE
from prometheus_client.registry import Collector

from connectors.models import Connector
from connectors.queries import STANDING_FIELDS, standings
from connectors.status import Status
from overview.counts import counts_due, readable
from overview.models import StoredFacet
from workspaces import tallies

__all__ = ["CONTENT_TYPE", "exposition"]

Sums = dict[tuple[str, str], float]

_COUNTERS = {
    "facet_reads": ("outcome", "Reads of facets: counted, invalid, or the kind of fault."),
    "facet_listings": (
        "outcome",
        "Listings of resources for facets: listed, or the kind of fault.",
    ),
    "endpoint_calls": ("outcome", "Tool calls by outside clients."),
    "resource_arguments": ("outcome", "Strings of tool calls that name resources."),
    "token_refreshes": ("outcome", "Renewals of sign-ins: renewed, refused or postponed."),
    "tasks": ("outcome", "Tasks that a worker ended: done or failed."),
}
_HISTOGRAMS = {
    "facet_read_seconds": "How long a read of a facet took, whatever came of it.",
    "queue_delay_seconds": "How long a task waited for a worker.",
}


def exposition() -> bytes:
    """Everything, as of now. Raises: redis.RedisError, django.db.Error."""
    tallies.flush()
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Now())
    return generate_latest(registry)


class _Now(Collector):
    def collect(self) -> Iterable[Metric]:
        sums = tallies.sums()
        yield from _counters(sums)
        yield from _histograms(sums)
        sockets = "Pages that are open: their websockets, over all web processes."
        yield GaugeMetricFamily("overview_open_sockets", sockets, tallies.level("open_sockets"))
        now = timezone.now()
        yield _by_status(now)
        waited = (
            "Since when the due count of a watched workspace that waits longest was last tried."
        )
        yield GaugeMetricFamily("overview_oldest_due_count_seconds", waited, _oldest_due(now))


def _counters(sums: Sums) -> Iterator[Metric]:
    for name, (label, words) in _COUNTERS.items():
        family = CounterMetricFamily(f"overview_{name}", words, labels=[label])
        for (counted, value), amount in sorted(sums.items()):
            if counted == name:
                family.add_metric([value], amount)
        yield family


def _histograms(sums: Sums) -> Iterator[Metric]:
    for name, words in _HISTOGRAMS.items():
        buckets, total = [], 0.0
        for bound in [*map(str, tallies.BUCKETS), "+Inf"]:
            total += sums.get((f"{name}_bucket", bound), 0)
            buckets.append((bound, total))
        spent = sums.get((f"{name}_sum", ""), 0)
        yield HistogramMetricFamily(f"overview_{name}", words, buckets=buckets, sum_value=spent)


def _by_status(now: datetime) -> Metric:
    words = "Connectors, of workspaces and of people, by status."
    family = GaugeMetricFamily("overview_connectors", words, labels=["status"])
    found = [each.status for each in standings(Connector.objects.only(*STANDING_FIELDS), now)]
    for status in Status:
        family.add_metric([status.value], found.count(status))
    return family


def _oldest_due(now: datetime) -> float:
    since_ready = Coalesce("connector__connection_since", "connector__created_at")
    tried = Coalesce("failed_at", "read_at", "connector__created_at")
    due = StoredFacet.objects.filter(
        counts_due(now),
        connector__in=readable(Q(workspace__watched_until__gt=now)).values("pk"),
    )
    oldest = due.aggregate(at=Min(Greatest(tried, since_ready)))["at"]
    return max(0.0, (now - oldest).total_seconds()) if oldest else 0.0
