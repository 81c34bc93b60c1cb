"""The overview with more, stranger and later things than anybody planned for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Page, expect

from tests.browser.site import Site, box_of, facet
from tests.browser.test_live_page import (
    BLOCKED,
    DRAFTS,
    announced,
    changed,
    opened,
    run_until_open,
    stopped_clock,
)
from tests.browser.test_panel_page import hidden, hide, shown
from tests.browser.test_shell_page import a_full_page

pytestmark = pytest.mark.browser


def test_five_hundred_rows_of_a_hundred_apps_can_be_worked_with(site: Site, page: Page):
    rows = [facet(f"Kind {n}", n + 1, connector=n % 100 + 1, app=f"App {n}") for n in range(500)]
    site.page_context = a_full_page(100)
    page.set_viewport_size({"width": 360, "height": 740})
    opened(site, page, *rows)
    expect(shown(page)).to_have_count(500)
    hide(page, "Kind 250")
    site.push(changed(rows.pop(400), 7_000, "critical"), *rows)
    expect(shown(page).first).to_have_text("7000 Kind 400")
    expect(shown(page)).to_have_count(499)
    expect(page.locator("#attention-summary")).to_have_text("1 critical · 498 warning")
    expect(page.locator(".grid > li")).to_have_count(100)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


TITLES = [
    "x" * 5_000,
    "word " * 1_000,
    "<b>bold</b> & {{ 7 }} <script>alert(1)</script>",
    "\u202eevil\u2066\u2067\u2068",
    "\u200b\u2060\ufeff",
    "a\u0301\u0302\u0303" * 500,
    "\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628 \u4f60 \U0001f9d1\u200d\U0001f680",
    "quote \" and ' and ` and \\",
]


def test_whatever_titles_hold_their_rows_keep_their_shape_and_their_buttons(site: Site, page: Page):
    page.set_viewport_size({"width": 360, "height": 740})
    opened(site, page, *(facet(each, 3, app=each[:100]) for each in TITLES))
    for row, title in zip(page.locator("#attention-list > li").all(), TITLES, strict=True):
        assert row.locator(".row__link bdi").text_content() == title
        assert 40 <= box_of(row)["height"] < 110
        button = box_of(row.get_by_role("button"))
        assert box_of(row.locator(".row__count"))["x"] < 80
        assert button["x"] + button["width"] <= 360
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for _ in TITLES:
        page.locator("#attention-list > li").first.get_by_role("button").press("Enter")
    page.reload()
    expect(shown(page)).to_have_count(0)
    page.get_by_role("button", name=f"Hidden ({len(TITLES)}) – show").press("Enter")
    assert hidden(page).locator("bdi").all_text_contents() == TITLES


@pytest.mark.parametrize("days", [-3, 3])
def test_ages_are_told_by_the_servers_clock_whatever_the_browsers_says(
    site: Site, page: Page, days: int
):
    wrong = datetime.now(UTC) + timedelta(days=days)
    page.clock.install(time=wrong)
    page.clock.pause_at(wrong + timedelta(seconds=1))
    opened(site, page, facet("Tasks blocked", 2, age_seconds=430))
    expect(page.locator(".row__age")).to_have_text("as of 7 minutes ago")
    page.clock.run_for(61_000)
    expect(page.locator(".row__age")).to_have_text("as of 8 minutes ago")


def test_only_a_break_of_ten_seconds_and_its_end_are_announced(site: Site, page: Page):
    time = stopped_clock(page)
    opened(site, page, DRAFTS)
    site.close_sockets(1012)
    time.run_for(9_000)
    expect(page.locator("#live")).to_have_text("Live")
    announced(page, "")
    site.accepts_sockets = False
    site.close_sockets(1012)
    time.run_for(12_000)
    announced(page, "Live updates stopped. Reconnecting.")
    run_until_open(site, time)
    announced(page, "Live again.")


def test_a_page_that_nobody_sees_asks_for_nothing_and_looks_once_it_is_seen(site: Site, page: Page):
    time = stopped_clock(page)
    opened(site, page, DRAFTS)

    def be_seen(is_seen: bool) -> None:
        page.evaluate(
            """(isSeen) => {
                Object.defineProperty(document, "hidden", { value: !isSeen, configurable: true });
                document.dispatchEvent(new Event("visibilitychange"));
            }""",
            is_seen,
        )

    be_seen(False)
    site.close_sockets(1012)
    site.show(BLOCKED)
    time.run_for(300_000)
    assert (site.fragments, site.sockets) == (0, [])
    be_seen(True)
    expect(shown(page)).to_have_text(["2 Tasks blocked"])
    expect(page.locator("#live")).to_have_text("Live")
