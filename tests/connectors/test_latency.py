"""The plot of a day's checks: what is drawn, what is left open, and what the words say."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from connectors.latency import HEIGHT, WIDTH, latency_plot, plot_of
from connectors.models import Check
from tests.connectors.records import ready

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def checks(*seen):
    """Each as (minutes ago, milliseconds); None for a failed one."""
    return [(NOW - timedelta(minutes=ago), ms is not None, ms) for ago, ms in seen]


def test_without_a_check_there_is_no_plot():
    assert plot_of([], NOW) is None


def test_checks_in_a_row_are_one_line_whose_highest_point_is_the_slowest_check():
    plot = plot_of(checks((40, 10), (25, 20), (10, 40)), NOW)
    assert plot.lines == ("187,29.0 189,20.0 191,2.0",)
    assert plot.failed == ()
    assert (plot.lowest_ms, plot.highest_ms, plot.median_ms) == (10, 40, 20)


def test_a_failed_check_and_a_time_without_checks_leave_gaps():
    plot = plot_of(checks((100, 10), (85, 10), (55, 10), (40, 10), (38, None), (10, 10)), NOW)
    assert [len(set(line.split())) for line in plot.lines] == [2, 1, 1]
    assert plot.failed == (187,)
    assert (plot.answered, plot.failures, plot.checks) == (5, 1, 6)
    assert plot.last_failed_at == NOW - timedelta(minutes=38)


def test_a_day_of_failures_is_all_marks():
    plot = plot_of(checks(*((ago, None) for ago in range(1439, 0, -5))), NOW)
    assert plot.lines == ()
    assert len(plot.failed) == 96
    assert plot.answered == 0


@pytest.mark.parametrize("ms", [0, 1, 4_000_000_000])
def test_everything_is_inside_the_frame(ms):
    plot = plot_of(checks((1440, ms), (720, ms), (0, ms), (0, ms)), NOW)
    for line in plot.lines:
        for point in line.split():
            x, y = map(float, point.split(","))
            assert 0 <= x <= WIDTH
            assert 0 <= y <= HEIGHT


@pytest.mark.django_db
def test_it_is_one_statement_and_of_this_connector_and_day_alone(acme, django_assert_num_queries):
    connector, other = ready(acme), ready(acme, "other")
    Check.objects.all().delete()
    now = timezone.now()
    for each, hours in ((connector, 1), (connector, 30), (other, 1)):
        at = now - timedelta(hours=hours)
        Check.objects.create(connector=each, at=at, is_ok=True, latency_ms=12, result="Ready")
    with django_assert_num_queries(1):
        assert latency_plot(connector, now).answered == 1


@pytest.mark.django_db
def test_the_page_draws_it_and_says_the_same_in_words(bob_client, acme):
    connector = ready(acme)
    at = timezone.now() - timedelta(hours=1)
    Check.objects.create(connector=connector, at=at, is_ok=False, latency_ms=900, result="Gone.")
    html = bob_client.get("/w/acme/connectors/mail/").content.decode()
    (plot,) = re.findall(r'<svg class="plot".*?</svg>', html)
    assert plot.count("<polyline") == plot.count("<path") == 1
    assert "style=" not in plot
    assert 'aria-hidden="true"' in plot
    assert "12 ms. 1 of 2 checks failed, the last" in html
