"""Which rows the panel has, and in what order. Pure: no database, no clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.protocol.facets import Level
from connectors.protocol.freshness import Policy
from connectors.protocol.placements import Placement
from connectors.status import Status
from overview.panel import AppState, FacetReading, build_panel, reading_of, row_key

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
POLICY = Policy()


def ago(seconds):
    return NOW - timedelta(seconds=seconds)


def facet(name="drafts", count: str | None = "3", age: float | None = 10, **changes):
    known = {
        "name": name,
        "title": "Drafts awaiting review",
        "level": Level.WARNING,
        "position": 0,
        "count": count,
        "read_at": None if age is None else ago(age),
        "failed_at": None,
    }
    return FacetReading(**{**known, **changes})


def app(*facets, pk=1, name="Outbound", **changes):
    known = {
        "connector_id": pk,
        "slug": name.lower(),
        "name": name,
        "placements": (Placement("main", name.lower(), None, None),),
        "status": Status.READY,
        "epoch": 1,
        "advertises_facets": True,
        "is_listed": True,
        "facets": facets,
    }
    return AppState(**{**known, **changes})


def panel(*apps):
    return build_panel(
        list(apps),
        NOW,
        POLICY,
        app_href=lambda route: f"/w/acme/app/{route}",
        connector_href=lambda slug: f"/w/acme/connectors/{slug}/",
    )


def titles(shown):
    return [row.title for row in shown.rows]


@pytest.mark.requirement("F-090", "F-097")
def test_a_count_above_zero_is_a_row_that_opens_the_apps_first_route():
    (row,) = panel(app(facet())).rows
    assert (row.count, row.title, row.app, row.state) == (
        "3",
        "Drafts awaiting review",
        "Outbound",
        "ok",
    )
    assert row.href == "/w/acme/app/outbound"


@pytest.mark.requirement("F-093", "F-105")
def test_zero_is_no_row_and_nothing_at_all_is_an_empty_panel():
    shown = panel(app(facet(count="0")))
    assert shown.is_empty
    assert shown.checking == 0


@pytest.mark.requirement("F-098")
def test_an_app_without_a_placement_route_has_a_row_without_an_action():
    (row,) = panel(app(facet(), placements=())).rows
    assert row.href is None


@pytest.mark.requirement("F-094", "F-103")
def test_a_failed_read_without_a_usable_count_is_unavailable_and_keeps_level_and_link():
    failed = facet(count=None, age=None, failed_at=ago(3), level=Level.CRITICAL, title="Blocked")
    shown = panel(app(facet(position=1), failed))
    assert [(row.title, row.state, row.count) for row in shown.rows] == [
        ("Blocked", "unavailable", None),
        ("Drafts awaiting review", "ok", "3"),
    ]
    assert shown.rows[0].href == "/w/acme/app/outbound"
    assert shown.rows[0].icon == "circle-question-mark"


@pytest.mark.requirement("F-110", "F-111", "F-112", "F-115", "F-120")
@pytest.mark.parametrize("age", [0, 59.999, 60, 300, 600])
def test_a_count_is_shown_to_ten_minutes_whatever_failed_since(age):
    reading = reading_of(facet(age=age, failed_at=ago(1)), NOW, POLICY)
    assert (reading.state, reading.count) == ("ok", "3")


@pytest.mark.requirement("F-113", "F-116")
def test_past_ten_minutes_the_old_count_is_not_shown_and_only_a_newer_failure_is_unavailable():
    assert reading_of(facet(age=600.001), NOW, POLICY).state == "checking"
    failed_since = facet(age=700, failed_at=ago(20))
    assert reading_of(failed_since, NOW, POLICY).state == "unavailable"
    failed_before = facet(age=700, failed_at=ago(800))
    assert reading_of(failed_before, NOW, POLICY).state == "checking"


@pytest.mark.requirement("F-107")
def test_what_was_never_read_is_being_checked_and_is_no_row():
    shown = panel(app(facet(count=None, age=None)))
    assert shown.is_empty
    assert shown.checking == 1
    assert panel(app(is_listed=False)).checking == 1


def test_a_failure_of_yesterday_says_nothing_about_now():
    never = facet(count=None, age=None, failed_at=ago(86_400))
    assert reading_of(never, NOW, POLICY).state == "checking"


@pytest.mark.requirement("F-100")
def test_rows_are_ordered_by_level_then_app_then_listing():
    first = app(
        facet("d", title="A warning too", position=3),
        facet("a", title="A info", level=Level.INFO, position=0),
        facet("b", title="A warning", position=1),
        facet("c", title="A critical", level=Level.CRITICAL, position=2),
        pk=1,
        name="Alpha",
    )
    second = app(
        facet("e", title="B critical", level=Level.CRITICAL),
        pk=2,
        name="Beta",
        placements=(Placement("main", "beta", None, None, priority=5),),
    )
    assert titles(panel(first, second)) == [
        "B critical",
        "A critical",
        "A warning",
        "A warning too",
        "A info",
    ]


@pytest.mark.requirement("F-101")
def test_apps_of_equal_priority_are_ordered_by_name_then_identifier():
    shown = panel(
        app(facet(title="third"), pk=3, name="Zed"),
        app(facet(title="second"), pk=2, name="App", slug="app-2"),
        app(facet(title="first"), pk=1, name="App", slug="app-1"),
    )
    assert titles(shown) == ["first", "second", "third"]


@pytest.mark.requirement("F-102")
@pytest.mark.parametrize(
    ("level", "icon", "word"),
    [
        (Level.CRITICAL, "octagon-x", "Critical"),
        (Level.WARNING, "triangle-alert", "Warning"),
        (Level.INFO, "info", "Info"),
    ],
)
def test_each_level_has_an_icon_and_a_word(level, icon, word):
    (row,) = panel(app(facet(level=level))).rows
    assert (row.icon, row.level_word) == (icon, word)


@pytest.mark.requirement("F-106", "F-140", "F-141", "F-142", "F-143", "F-145")
@pytest.mark.parametrize(
    ("status", "title", "level"),
    [
        (Status.RECONNECTION_NEEDED, "Reconnection needed", Level.CRITICAL),
        (Status.CONFIGURATION_REQUIRED, "Configuration required", Level.CRITICAL),
        (Status.FAILED, "Failed", Level.CRITICAL),
        (Status.CONNECTING, "Connecting…", Level.INFO),
        (Status.STARTING, "Starting…", Level.INFO),
    ],
)
def test_a_connector_that_is_not_ready_shows_its_status_in_place_of_its_facets(
    status, title, level
):
    (row,) = panel(app(facet(), status=status)).rows
    assert (row.title, row.level, row.state) == (title, level, status.value)
    assert row.href == "/w/acme/connectors/outbound/"
    assert row.count is None


@pytest.mark.requirement("F-144")
def test_a_connector_at_rest_shows_nothing():
    assert panel(app(facet(), status=Status.AT_REST)).is_empty


@pytest.mark.requirement("F-007", "F-012")
def test_a_server_that_does_not_advertise_has_no_rows_whatever_is_stored():
    shown = panel(app(facet(), advertises_facets=False))
    assert shown.is_empty
    assert shown.checking == 0


def test_a_status_row_stands_where_its_apps_facets_would():
    shown = panel(
        app(facet(title="Alpha blocked", level=Level.CRITICAL), pk=1, name="Alpha"),
        app(pk=2, name="Beta", status=Status.FAILED),
        app(facet(title="Gamma blocked", level=Level.CRITICAL), pk=3, name="Gamma"),
    )
    assert titles(shown) == ["Alpha blocked", "Failed", "Gamma blocked"]


@pytest.mark.requirement("F-034", "F-122", "F-173")
def test_keys_of_different_facets_never_collide():
    names = ["a", "a/b", "a:b", "a\0", "ä", "a" * 10_000, "a" * 10_001, "sha256:x", "\u202e", "a b"]
    keys = {row_key(pk, name) for pk in (1, 11) for name in names}
    assert len(keys) == 2 * len(names)


@given(st.integers(1, 50), st.text(max_size=300))
def test_a_key_is_short_and_printable(pk, name):
    key = row_key(pk, name)
    assert len(key) < 150
    assert key.isprintable()


def test_a_count_older_than_two_minutes_says_so():
    assert not reading_of(facet(age=120), NOW, POLICY).is_old
    assert reading_of(facet(age=121), NOW, POLICY).is_old


@pytest.mark.requirement("F-113", "S-004", "S-005")
def test_the_panel_knows_when_time_alone_changes_it():
    soon = NOW + timedelta(seconds=100)
    assert panel(app(facet("a", age=50), facet("b", age=400), facet("c", "0", age=590))).until == (
        NOW + timedelta(seconds=200)
    )
    signing_in = app(pk=2, name="Mail", status=Status.CONNECTING, sign_in_ends_at=soon)
    assert panel(app(facet(age=400)), signing_in).until == soon
    abandoned = app(pk=2, name="Mail", status=Status.FAILED, sign_in_ends_at=ago(1))
    assert panel(app(facet("a", None, None)), abandoned).until is None
