"""How an open page follows the server: changes, focus, pointer, news, the connection's states."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from connectors.status import Status
from overview.panel import Row
from tests.browser.site import Site, box_of, down, facet
from tests.browser.test_panel_page import focused, hide, shown

pytestmark = pytest.mark.browser

BLOCKED = facet("Tasks blocked", 2, "critical")
DRAFTS = facet("Drafts awaiting review", 3, app="Outbound", connector=2)
REPLIES = facet("Replies received", 12, "info", app="Outbound", connector=2)


def changed(row: Row, count: int, level: str | None = None) -> Row:
    return facet(row.title, count, level or row.level, app=row.app, connector=row.connector_id)


def opened(site: Site, page: Page, *rows: Row) -> None:
    site.open(page, *rows)
    expect(page.locator("#live")).to_have_text("Live")
    page.mouse.move(5, 5)


def stopped_clock(page: Page) -> Any:
    """Time that stands still until the test moves it, however long that takes."""
    now = datetime.now(UTC)
    page.clock.install(time=now)
    page.clock.pause_at(now + timedelta(seconds=1))
    return page.clock


def run_until_open(site: Site, time: Any) -> None:
    """A socket opens in time of its own, so the clock that tries again moves in steps."""
    site.accepts_sockets = True
    for _ in range(90):
        if site.sockets:
            return
        time.run_for(1_000)


def announced(page: Page, text: str) -> None:
    expect(page.locator("#announcer")).to_have_text(text)


def test_a_change_appears_in_order_and_the_badge_agrees(site, page: Page):
    opened(site, page, DRAFTS, REPLIES)
    site.push(BLOCKED, changed(DRAFTS, 4), REPLIES)
    expect(shown(page)).to_have_text(
        ["2 Tasks blocked", "4 Drafts awaiting review", "12 Replies received"]
    )
    expect(page).to_have_title("(2) Overview · Acme")
    expect(page.locator("#favicon")).to_have_attribute("href", re.compile("critical"))
    site.push(DRAFTS)
    expect(page).to_have_title("(1) Overview · Acme")
    expect(page.locator("#favicon")).to_have_attribute("href", re.compile("warning"))
    site.push()
    expect(page.locator("#attention")).to_have_count(0)
    expect(page).to_have_title("Overview · Acme")
    expect(page.locator("#favicon")).to_have_attribute("href", "/static/img/favicon.svg")


@pytest.mark.requirement("F-162", "F-163", "F-164")
def test_a_hidden_row_stays_away_while_its_count_falls_and_returns_when_it_rises(site, page: Page):
    opened(site, page, changed(BLOCKED, 5), DRAFTS)
    hide(page, "Tasks blocked")
    for count, titles in (
        (2, ["3 Drafts awaiting review"]),
        (3, ["3 Tasks blocked", "3 Drafts awaiting review"]),
    ):
        site.push(changed(BLOCKED, count), DRAFTS)
        expect(page.locator(f'[data-key="{BLOCKED.key}"]')).to_have_attribute(
            "data-count", str(count)
        )
        expect(shown(page)).to_have_text(titles)


@pytest.mark.requirement("F-113")
def test_a_count_that_ends_leaves_the_page_though_nobody_pushes_it(site, page: Page):
    clock = stopped_clock(page)
    opened(site, page, DRAFTS)
    site.panel = replace(site.panel, until=datetime.now(UTC) + timedelta(seconds=60))
    page.reload()
    site.show(checking=1)
    clock.run_for(30_000)
    expect(shown(page)).to_have_text(["3 Drafts awaiting review"])
    clock.run_for(40_000)
    expect(shown(page)).to_have_count(0)
    asked = site.fragments
    clock.run_for(30_000)
    # One may have waited for the one that brought it; nothing asks again and again.
    assert site.fragments <= asked + 1


def test_the_focus_stays_on_its_row_through_a_reorder(site, page: Page):
    opened(site, page, BLOCKED, DRAFTS, REPLIES)
    page.get_by_role("link", name="12 Replies received").focus()
    page.evaluate("document.activeElement.mine = true")
    site.push(changed(REPLIES, 13, "critical"), BLOCKED, DRAFTS)
    expect(shown(page).first).to_have_text("13 Replies received")
    assert focused(page) == "13 Replies received"
    assert page.evaluate("document.activeElement.mine")


def test_the_focus_moves_to_the_nearest_row_when_its_own_goes_and_at_last_to_the_heading(
    site, page: Page
):
    opened(site, page, BLOCKED, DRAFTS, REPLIES)
    page.get_by_role("link", name="3 Drafts awaiting review").focus()
    site.push(BLOCKED, REPLIES)
    expect(shown(page)).to_have_count(2)
    assert focused(page) == "12 Replies received"
    site.push(BLOCKED)
    expect(shown(page)).to_have_count(1)
    assert focused(page) == "2 Tasks blocked"
    site.push()
    expect(page.locator("#attention")).to_have_count(0)
    assert focused(page) == "Overview"


def test_rows_wait_while_the_pointer_is_over_the_list_and_numbers_do_not(site, page: Page):
    opened(site, page, DRAFTS, REPLIES)
    shown(page).last.hover()
    site.push(BLOCKED, changed(DRAFTS, 8))
    expect(shown(page)).to_have_text(["8 Drafts awaiting review", "12 Replies received"])
    page.mouse.move(5, 5)
    expect(shown(page)).to_have_text(["2 Tasks blocked", "8 Drafts awaiting review"])


def test_rows_wait_no_longer_than_five_seconds(site, page: Page):
    time = stopped_clock(page)
    opened(site, page, DRAFTS)
    shown(page).last.hover()
    site.push(BLOCKED, changed(DRAFTS, 4))
    time.run_for(500)
    expect(shown(page)).to_have_text(["4 Drafts awaiting review"])
    time.run_for(4_000)
    expect(shown(page)).to_have_count(1)
    time.run_for(1_500)
    expect(shown(page)).to_have_count(2)


def test_what_is_below_the_panel_does_not_move_for_someone_who_scrolled_past_it(site, page: Page):
    page.set_viewport_size({"width": 800, "height": 400})
    rows = [facet(f"Row {n}", n + 1, connector=n) for n in range(30)]
    site.page_context = {"apps": [], "health": []}
    opened(site, page, *rows)
    page.evaluate("document.querySelector('main').style.paddingBottom = '2000px'")
    page.evaluate("scrollTo(0, document.getElementById('apps').offsetTop + 50)")
    before = box_of(page.locator("#apps"))["y"]
    site.push(BLOCKED, DRAFTS, *rows)
    expect(shown(page)).to_have_count(32)
    assert abs(box_of(page.locator("#apps"))["y"] - before) < 2


def test_news_are_announced_at_most_every_ten_seconds_and_never_info_or_falls(site, page: Page):
    time = stopped_clock(page)
    opened(site, page, DRAFTS)
    time.run_for(500)
    site.push(BLOCKED, DRAFTS)
    time.run_for(500)
    announced(page, "Needs attention: 2 Tasks blocked.")
    for count in (9, 10):
        site.push(changed(BLOCKED, 1), changed(DRAFTS, count), REPLIES)
        time.run_for(500)
        expect(shown(page).nth(1)).to_have_text(f"{count} Drafts awaiting review")
        announced(page, "Needs attention: 2 Tasks blocked.")
    time.run_for(10_000)
    announced(page, "Needs attention: 10 Drafts awaiting review.")
    site.push(changed(BLOCKED, 1), changed(DRAFTS, 2))
    time.run_for(500)
    expect(shown(page)).to_have_text(["1 Tasks blocked", "2 Drafts awaiting review"])
    time.run_for(20_000)
    announced(page, "Needs attention: 10 Drafts awaiting review.")
    site.push()
    time.run_for(500)
    announced(page, "Nothing needs attention.")


def test_many_news_are_told_as_three_rows_and_a_number(site, page: Page):
    opened(site, page)
    site.push(*(facet(f"Row {n}", 1) for n in range(6)))
    announced(page, "Needs attention: 1 Row 0, 1 Row 1, 1 Row 2, and 3 more.")


def test_an_old_message_asks_for_nothing_and_a_tick_with_a_newer_version_asks(site, page: Page):
    time = stopped_clock(page)
    opened(site, page, DRAFTS)
    site.sockets[0].send(f'{{"type": "panel.changed", "version": {site.panel.version}}}')
    time.run_for(1_000)
    assert site.fragments == 0
    site.show(BLOCKED)
    site.sockets[0].send(f'{{"type": "tick", "version": {site.panel.version}}}')
    time.run_for(1_000)
    expect(shown(page)).to_have_text(["2 Tasks blocked"])
    assert site.fragments == 1


def test_a_lost_socket_is_said_after_a_second_and_the_page_starts_fresh_on_the_next(
    site, page: Page
):
    time = stopped_clock(page)
    opened(site, page, DRAFTS)
    site.accepts_sockets = False
    site.close_sockets(1012)
    time.run_for(500)
    expect(page.locator("#live")).to_have_attribute("data-state", "live")
    time.run_for(2_000)
    expect(page.locator("#live")).to_have_text(re.compile("^Reconnecting… last updated "))
    site.show(BLOCKED)
    run_until_open(site, time)
    expect(page.locator("#live")).to_have_text("Live")
    expect(shown(page)).to_have_text(["2 Tasks blocked"])


def test_without_a_socket_the_page_asks_every_minute(site, page: Page):
    time = stopped_clock(page)
    site.accepts_sockets = False
    site.open(page, DRAFTS)
    time.run_for(32_000)
    expect(page.locator("#live")).to_have_text("Checking every minute")
    announced(page, "Live updates stopped. Reconnecting.")
    site.show(BLOCKED)
    time.run_for(30_000)
    expect(shown(page)).to_have_text(["2 Tasks blocked"])


def test_a_silent_socket_counts_as_lost(site, page: Page):
    time = stopped_clock(page)
    opened(site, page, DRAFTS)
    site.accepts_sockets = False
    time.run_for(80_000)
    expect(page.locator("#live")).not_to_have_attribute("data-state", "live")


def test_a_flapping_socket_is_tried_less_and_less_often(site, page: Page):
    time = stopped_clock(page)
    opened(site, page, DRAFTS)
    tried = 0
    for _ in range(60):
        tried += len(site.sockets)
        site.close_sockets(1012)
        time.run_for(2_000)
    assert tried < 20


def test_offline_is_said_and_the_page_catches_up_when_it_is_over(site, page: Page, context):
    opened(site, page, DRAFTS)
    context.set_offline(True)
    expect(page.locator("#live")).to_have_text(re.compile("^Offline – last updated "))
    expect(page.locator("#live use")).to_have_attribute("href", "#i-wifi-off")
    site.show(BLOCKED)
    context.set_offline(False)
    expect(page.locator("#live")).to_have_text("Live")
    expect(shown(page)).to_have_text(["2 Tasks blocked"])


@pytest.mark.parametrize(
    ("code", "words", "href"),
    [
        (4401, "Signed out. Sign in again", "/sign-in/?next="),
        (4403, "You no longer have access", "/"),
    ],
)
def test_a_session_or_membership_that_ended_is_said_and_not_retried(
    site, page: Page, code, words, href
):
    time = stopped_clock(page)
    opened(site, page, DRAFTS)
    site.close_sockets(code)
    link = page.locator("#live").get_by_role("link", name=words)
    expect(link).to_have_attribute("href", re.compile(re.escape(href)))
    time.run_for(120_000)
    assert site.sockets == []
    assert site.fragments == 0


@pytest.mark.parametrize(
    ("status", "words"), [(401, "Signed out. Sign in again"), (404, "You no longer have access")]
)
def test_a_fragment_that_is_refused_ends_the_page_too(site, page: Page, errors, status, words):
    opened(site, page, DRAFTS)
    site.fragment_status = status
    site.push(BLOCKED)
    expect(page.locator("#live")).to_have_text(words)
    # Chromium itself reports a refused request on the console.
    assert all(f"status of {status}" in error for error in errors)
    errors.clear()


@pytest.mark.requirement("F-168")
def test_a_hidden_facet_returns_after_its_connector_was_not_ready(site, page: Page):
    opened(site, page, BLOCKED, DRAFTS)
    hide(page, "Tasks blocked")
    site.push(down("Tasks", Status.STARTING, connector=1), DRAFTS, checking=1)
    expect(shown(page)).to_have_text(["Starting…", "3 Drafts awaiting review"])
    site.push(BLOCKED, DRAFTS)
    expect(shown(page)).to_have_text(["2 Tasks blocked", "3 Drafts awaiting review"])


def test_a_count_that_grows_old_says_its_age(site, page: Page):
    opened(site, page, facet("Tasks blocked", 2, age_seconds=430))
    expect(page.locator(".row__age")).to_have_text("as of 7 minutes ago")
