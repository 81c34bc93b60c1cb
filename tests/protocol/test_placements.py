from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.protocol.placements import (
    MAX_PLACEMENTS,
    Placement,
    app_order_key,
    first_route,
    parse_placements,
)


def place(slot: str = "sidebar.apps", route: str | None = "crm", priority: int = 100) -> Placement:
    return Placement(slot, route, "CRM", None, priority)


def test_a_placement_is_read_with_all_its_members():
    value = {"slot": "main", "route": "crm/leads", "label": " Leads\n", "icon": "inbox"}
    assert parse_placements([value | {"priority": 5.0, "unknown": 1}]) == (
        [Placement("main", "crm/leads", "Leads", "inbox", 5)],
        [],
    )
    assert parse_placements([{"slot": "main"}]) == ([Placement("main", None, None, None, 100)], [])


@pytest.mark.requirement("F-099")
@pytest.mark.parametrize(
    "route",
    [
        *("//evil.example", "/crm", "crm/", "a//b", "https://evil.example", "javascript:alert(1)"),
        *("..", "../..", "a/../b", ".", "a\\b", "a%2fb", "a?b", "a#b", "a b", "crm\n", "\ncrm", ""),
        *("CRM", "é", "-a", "a" * 65, "a/" * 150 + "a", 5, True, [], {}, "\ud800"),
    ],
)
def test_a_route_that_could_leave_the_app_area_is_no_route(route):
    placements, reasons = parse_placements([{"slot": "main", "route": route}])
    assert first_route(placements) is None
    assert ["route" in reason for reason in reasons] == [True]


@pytest.mark.parametrize("value", [{}, 5, "x", [5], [None], [[]], [{"slot": 5}], [{"slot": "A b"}]])
def test_what_is_no_placement_is_left_out_with_a_reason(value):
    placements, reasons = parse_placements(value)
    assert placements == []
    assert len(reasons) == 1


@pytest.mark.parametrize(
    "priority", [None, True, "1", 1.5, float("nan"), float("inf"), 10**30, -(10**30), []]
)
def test_a_priority_that_is_none_counts_as_the_default(priority):
    [placement], _ = parse_placements([{"slot": "main", "route": "a", "priority": priority}])
    assert placement.priority == 100


def test_a_list_without_end_is_cut_short():
    placements, reasons = parse_placements([{"slot": "main"}] * 10_000)
    assert len(placements) == MAX_PLACEMENTS
    assert len(reasons) == 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.sampled_from(["slot", "route", "label", "icon", "priority"]), inner)
    ),
)


@given(JSON)
def test_no_json_makes_placements_fail(value):
    placements, _ = parse_placements(value)
    first_route(placements)


@pytest.mark.requirement("F-097")
def test_rows_open_the_route_of_lowest_priority_then_of_first_declaration():
    assert first_route([place(route="b"), place(route="a")]) == "b"
    assert first_route([place(route="b"), place(route="a", priority=99)]) == "a"


@pytest.mark.requirement("F-098")
def test_only_main_and_sidebar_slots_with_a_route_can_be_opened():
    closed = [place("toolbar", priority=1), place("sidebar", priority=1), place(route=None)]
    assert first_route(closed) is None
    assert first_route([*closed, place("main")]) == "crm"


@pytest.mark.requirement("F-100", "F-101")
def test_apps_stand_in_order_of_priority_then_label_then_identifier():
    apps = [
        ([], "Zebra", "z"),
        ([place(priority=100)], "beta", "b2"),
        ([place(priority=100)], "beta", "b1"),
        ([place(priority=100)], "Alpha", "x"),
        ([place("toolbar", priority=1)], "alpha", "y"),
        ([place(priority=5), place(priority=1)], "Yak", "c"),
    ]
    ordered = sorted(apps, key=lambda app: app_order_key(*app))
    assert [identifier for _, _, identifier in ordered] == ["c", "x", "y", "b1", "b2", "z"]
