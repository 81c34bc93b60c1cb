"""The rules of hiding, run in Chromium: which entries a browser keeps when rows arrive, what it
makes of a stored value, and what reaches storage."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Page

from tests.browser.site import ORIGIN

RowData = dict[str, str]

pytestmark = pytest.mark.browser

KEY = "1/blocked"
RECONCILE = """([hidden, rows, isComplete]) => JSON.parse(Preferences.serialise({
    hidden: Preferences.reconcile(new Map(Object.entries(hidden)), rows, isComplete),
})).hidden"""
PARSE = "(text) => JSON.parse(Preferences.serialise(Preferences.parse(text)))"
EMPTY = {"hidden": {}, "collapsed": False}


@pytest.fixture
def rules(site, page):
    page.goto(f"{ORIGIN}/blank/")
    page.add_script_tag(url="/static/js/preferences.js")
    return page


def counted(count: str, **changes: str) -> RowData:
    return {"key": KEY, "epoch": "1", "level": "warning", "count": count, **changes}


def unavailable(**changes: str) -> RowData:
    return {"key": KEY, "epoch": "1", "level": "warning", **changes}


def status(value: str, key: str = "1", **changes: str) -> RowData:
    return {"key": key, "epoch": "1", "level": "critical", "status": value, **changes}


def kept(
    rules: Page, entry: RowData, *rows: RowData, key: str = KEY, is_complete: bool = True
) -> RowData | None:
    """What is left of the entry when these rows arrive; None if it is dropped."""
    entries: dict[str, RowData] = rules.evaluate(RECONCILE, [{key: entry}, rows, is_complete])
    return entries.get(key)


def seen(count: str, epoch: str = "1") -> RowData:
    return {"count": count, "epoch": epoch}


@pytest.mark.requirement("F-161", "F-162", "F-163", "F-164", "F-165")
def test_a_count_keeps_its_row_hidden_until_it_rises_above_the_lowest_seen(rules):
    assert kept(rules, seen("3"), counted("3")) == seen("3")
    assert kept(rules, seen("3"), counted("4")) is None
    fallen = kept(rules, seen("5"), counted("2"))
    assert fallen == seen("2")
    assert kept(rules, fallen, counted("3")) is None


@pytest.mark.requirement("F-073")
@pytest.mark.parametrize(
    ("remembered", "count", "is_hidden"),
    [
        ("9007199254740992", "9007199254740993", False),
        ("9007199254740993", "9007199254740993", True),
        ("9007199254740993", "9007199254740992", True),
        ("99999999999999999999", "100000000000000000000", False),
        ("10", "9", True),
        ("9", "10", False),
        ("1" + "0" * 4000, "1" + "0" * 3999 + "1", False),
    ],
)
def test_counts_are_compared_exactly_however_large(rules, remembered, count, is_hidden):
    assert (kept(rules, seen(remembered), counted(count)) is not None) == is_hidden


@pytest.mark.requirement("F-166")
def test_a_row_that_went_away_is_news_when_it_comes_back(rules):
    assert kept(rules, seen("3")) is None


@pytest.mark.requirement("F-169", "F-170")
def test_an_unavailable_row_keeps_its_entry_and_one_hidden_so_returns_with_a_count(rules):
    assert kept(rules, seen("3"), unavailable()) == seen("3")
    hidden_while_unavailable = {"epoch": "1"}
    assert kept(rules, hidden_while_unavailable, unavailable()) == hidden_while_unavailable
    assert kept(rules, hidden_while_unavailable, counted("1")) is None


@pytest.mark.requirement("F-167")
def test_a_hidden_status_row_returns_with_another_status_or_after_the_connector_was_ready(rules):
    entry = {"status": "failed", "epoch": "1"}
    assert kept(rules, entry, status("failed"), key="1") == entry
    assert kept(rules, entry, status("reconnection_needed"), key="1") is None
    assert kept(rules, entry, status("failed", epoch="2"), key="1") is None
    assert kept(rules, entry, key="1") is None


@pytest.mark.requirement("F-168")
def test_a_hidden_facet_returns_once_its_connector_was_not_ready(rules):
    assert kept(rules, seen("3"), counted("3", epoch="2")) is None
    assert kept(rules, seen("3"), unavailable(epoch="2")) is None
    assert kept(rules, seen("3"), status("starting"), is_complete=False) is None
    other = status("failed", key="11")
    assert kept(rules, seen("3"), other, is_complete=False) == seen("3")


@pytest.mark.requirement("F-171", "F-172", "F-173")
def test_an_entry_belongs_to_one_connector_and_facet_whatever_the_level_and_title(rules):
    assert kept(rules, seen("3"), counted("3", level="critical")) == seen("3")
    assert kept(rules, seen("3"), counted("3", key="1/renamed")) is None
    assert kept(rules, seen("3"), counted("3", key="2/blocked")) is None


@pytest.mark.requirement("F-181")
def test_entries_of_vanished_rows_are_kept_while_readings_are_on_their_way(rules):
    assert kept(rules, seen("3"), is_complete=False) == seen("3")
    assert kept(rules, seen("3"), is_complete=True) is None


@pytest.mark.requirement("F-179")
@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "not JSON",
        "[]",
        "5",
        "null",
        '"text"',
        '{"hidden":[1]}',
        '{"hidden":"x","collapsed":"yes"}',
        '{"hidden":{"1/a":3,"1/b":null,"1/c":[],"1/d":{"count":3},"1/e":{"count":"x"}}}',
        '{"hidden":{"1/a":{"count":"-1"},"1/b":{"epoch":1},"1/c":{"status":true}}}',
        json.dumps({"hidden": {"1/a": {"count": "9" * 6000}}}),
        '{"hidden":{}' + " " * 500_000 + "}",
        "[" * 100_000,
    ],
)
def test_a_stored_value_that_is_not_ours_counts_as_empty(rules, text):
    assert rules.evaluate(PARSE, text) == EMPTY


@pytest.mark.requirement("F-179")
def test_what_is_sound_in_a_stored_value_is_kept_and_no_name_is_special(rules):
    text = '{"hidden":{"__proto__":{"count":"1"},"1/a":{"count":"2"},"1/b":7},"collapsed":true}'
    parsed = rules.evaluate(f"(text) => JSON.stringify(({PARSE})(text))", text)
    assert json.loads(parsed) == {
        "hidden": {"__proto__": {"count": "1"}, "1/a": {"count": "2"}},
        "collapsed": True,
    }
