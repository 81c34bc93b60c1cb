"""One worker's threads: silent servers do not take them all, and a backlog does not grow."""

from __future__ import annotations

import pytest
from django.utils import timezone

from connectors import tasks
from connectors.models import Connector
from connectors.tasks import check_connector, check_connectors
from overview.tasks import refresh_connectors
from tests.overview.factories import make_connector
from tests.servers.raw import raw_server


@pytest.mark.django_db(transaction=True)
def test_checks_leave_half_of_the_threads_to_reads_and_the_rest_stays_due(acme, settings):
    with raw_server() as server:
        now = timezone.now()
        connector = make_connector(acme, url=server.url, check_due_at=now, connection="starting")
        slots = settings.CELERY_WORKER_CONCURRENCY // 2
        taken = [tasks._slots.acquire(blocking=False) for _ in range(slots)]
        assert all(taken)
        try:
            check_connector(connector.pk)
            assert server.requests == []
            connector.refresh_from_db()
            assert connector.check_due_at == now and connector.check_lease_until is None
        finally:
            tasks._slots.release(slots)
        check_connector(connector.pk)
        assert Connector.objects.get().connection == "ready"


def test_what_the_sweeps_queue_is_dropped_before_it_piles_up():
    # A sweep every 2 s queues again what is still due.
    swept = (check_connector, check_connectors, refresh_connectors)
    assert [each.expires for each in swept] == [10] * 3
