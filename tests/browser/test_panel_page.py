"""What the panel shows, and what a reader can do with its rows."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from connectors.status import Status
from tests.browser.site import Site, box_of, down, errors_of, facet

pytestmark = pytest.mark.browser

BLOCKED = facet("Tasks blocked", 2, "critical")
DRAFTS = facet("Drafts awaiting review", 3, app="Outbound", connector=2)
REPLIES = facet("Replies received", 12, "info", app="Outbound", connector=2)
INVOICES = facet("Invoices to approve", None, app="Books", connector=3)


def shown(page: Page) -> Locator:
    return page.locator("#attention-list > li .row__link")


def hidden(page: Page) -> Locator:
    return page.locator("#attention-hidden > li .row__link")


def hide(page: Page, title: str) -> None:
    # By keyboard: a pointer that stays over the list would hold changes back.
    page.get_by_role("button", name=f"Hide “{title}” until it changes").press("Enter")


def focused(page: Page) -> str:
    label: str = page.evaluate(
        "document.activeElement.ariaLabel ?? document.activeElement.textContent"
    )
    return label


@pytest.mark.requirement("F-090", "F-091", "F-092", "F-097", "F-098", "F-102")
def test_a_row_says_level_count_and_title_and_is_a_link_only_with_a_page(site, page: Page):
    site.open(page, BLOCKED, facet("Stray", "99999999999999999999", "info", href=None))
    rows = page.locator("#attention-list > li")
    expect(rows.first).to_have_attribute("data-level", "critical")
    expect(rows.first.locator(".row__text")).to_have_text("Critical: 2 Tasks blocked")
    expect(rows.first.locator("use").first).to_have_attribute("href", "#i-octagon-x")
    link = page.get_by_role("link", name="2 Tasks blocked", exact=True)
    expect(link).to_have_attribute("href", "/w/acme/app/tasks")
    expect(rows.last.locator(".row__text")).to_have_text("Info: 99999999999999999999 Stray")
    expect(rows.last.get_by_role("link")).to_have_count(0)
    # The whole row opens the app, except the button that hides it.
    rows.first.locator(".row__app").click(force=True)
    expect(page).to_have_url(re.compile("/w/acme/app/tasks$"))


@pytest.mark.requirement("F-094", "F-103")
def test_an_unavailable_row_says_so_without_a_number_and_is_left_out_of_the_summary(
    site, page: Page
):
    site.open(page, BLOCKED, INVOICES, REPLIES)
    row = page.locator("li[data-unavailable]")
    expect(row.locator(".row__text")).to_have_text("Warning: Invoices to approve unavailable")
    expect(row.locator("use").first).to_have_attribute("href", "#i-circle-question-mark")
    expect(page.locator("#attention-summary")).to_have_text("1 critical · 1 info")
    expect(page).to_have_title("(1) Overview · Acme")


@pytest.mark.requirement("F-105", "F-107")
def test_nothing_to_show_is_no_panel_and_first_readings_are_said_after_a_second(site, page: Page):
    site.open(page)
    expect(page.locator("#live")).to_have_text("Live")
    expect(page.locator("#attention")).to_have_count(0)
    expect(page).to_have_title("Overview · Acme")
    site.open(page, checking=4)
    checking = page.get_by_text("Checking 4 connectors…")
    expect(checking).to_be_hidden()
    expect(checking).to_be_visible()


def test_a_hostile_title_is_text_and_a_right_to_left_one_does_not_move_the_number(site, page: Page):
    markup = "<img src=x onerror=alert(1)>"
    site.open(
        page,
        facet(markup, 3),
        facet("\u202e\u05e2\u05d1\u05e8\u05d9\u05ea", 4),
        facet("x" * 5000, 5),
    )
    expect(shown(page).first).to_have_text(f"3 {markup}")
    expect(page.locator("#attention img")).to_have_count(0)
    number, title = (box_of(shown(page).nth(1).locator(s)) for s in (".row__count", "bdi"))
    assert number["x"] + number["width"] <= title["x"]
    assert box_of(page.locator("#attention-list > li").last)["height"] < 80
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.requirement("F-160", "F-161")
def test_hiding_a_row_sends_nothing_and_lasts_in_this_browser(site, page: Page):
    site.open(page, BLOCKED, DRAFTS, REPLIES)
    expect(page.locator("#live")).to_have_text("Live")
    asked = len(site.requests)
    hide(page, "Tasks blocked")
    expect(shown(page)).to_have_text(["3 Drafts awaiting review", "12 Replies received"])
    assert focused(page) == "Hide “Drafts awaiting review” until it changes"
    expect(page.locator("#announcer")).to_have_text("Hidden until it changes.")
    expect(page.locator("#attention-summary")).to_have_text("1 warning · 1 info")
    expect(page).to_have_title("(1) Overview · Acme")
    assert [path for path in site.requests[asked:] if "/img/" not in path] == []
    page.reload()
    expect(shown(page)).to_have_text(["3 Drafts awaiting review", "12 Replies received"])


@pytest.mark.requirement("F-161")
def test_no_frame_shows_a_hidden_row_while_the_page_loads(site, page: Page):
    site.open(page, BLOCKED, DRAFTS)
    hide(page, "Tasks blocked")
    page.add_init_script("""
        const seen = (globalThis.seen = []);
        (function look() {
            const rows = [...document.querySelectorAll("[data-row]")];
            seen.push(...rows.filter((row) => row.checkVisibility()).map((row) => row.dataset.key));
            requestAnimationFrame(look);
        })();
    """)
    page.reload()
    expect(page.locator("#live")).to_have_text("Live")
    assert set(page.evaluate("seen")) == {DRAFTS.key}


@pytest.mark.requirement("F-177")
def test_hidden_rows_are_listed_on_demand_and_can_be_shown_again(site, page: Page):
    site.open(page, BLOCKED, DRAFTS, REPLIES)
    for title in ("Drafts awaiting review", "Replies received"):
        hide(page, title)
    foot = page.get_by_role("button", name="Hidden (2) – show")
    expect(foot).to_have_attribute("aria-expanded", "false")
    foot.click()
    expect(hidden(page)).to_have_text(["3 Drafts awaiting review", "12 Replies received"])
    page.get_by_role("button", name="Show again: Drafts awaiting review").click()
    expect(shown(page)).to_have_text(["2 Tasks blocked", "3 Drafts awaiting review"])
    assert focused(page) == "Show again: Replies received"
    hide(page, "Tasks blocked")
    hide(page, "Drafts awaiting review")
    expect(page.locator("#attention")).to_contain_text("Hidden (3)")
    expect(page.locator("#attention")).to_have_attribute("data-shown", "0")
    page.get_by_role("button", name="Show all").click()
    expect(shown(page)).to_have_text(
        ["2 Tasks blocked", "3 Drafts awaiting review", "12 Replies received"]
    )
    expect(page.locator("#attention-foot")).to_be_hidden()
    assert focused(page) == "Needs attention"


@pytest.mark.requirement("F-177")
def test_a_panel_whose_rows_are_all_hidden_is_one_line_that_has_the_focus(site, page: Page):
    site.open(page, BLOCKED)
    hide(page, "Tasks blocked")
    assert focused(page) == "Hidden (1) – show"
    assert box_of(page.locator("#attention"))["height"] < 60
    expect(page).to_have_title("Overview · Acme")


@pytest.mark.requirement("F-176", "F-182")
def test_a_collapsed_panel_stays_so_and_still_says_what_is_in_it(site, page: Page):
    site.open(page, BLOCKED, DRAFTS)
    hide(page, "Tasks blocked")
    toggle = page.get_by_role("button", name="Needs attention")
    toggle.click()
    expect(toggle).to_have_attribute("aria-expanded", "false")
    page.reload()
    expect(toggle).to_have_attribute("aria-expanded", "false")
    expect(page.locator("#attention-list")).to_be_hidden()
    expect(page.locator("#attention-summary")).to_have_text("1 warning")
    expect(page.locator("#live")).to_have_text("Live")
    site.push(facet("Tasks blocked", 5, "critical"), DRAFTS)
    expect(page.locator("#attention-summary")).to_have_text("1 critical · 1 warning")
    expect(page.locator("#attention-summary use")).to_have_attribute("href", "#i-octagon-x")
    expect(page.locator("#attention-list")).to_be_hidden()
    expect(page).to_have_title("(2) Overview · Acme")


@pytest.mark.requirement("F-178")
@pytest.mark.parametrize("broken", ["getItem", "setItem"])
def test_without_storage_hiding_and_collapsing_last_as_long_as_the_page(site, page: Page, broken):
    page.add_init_script(f"Storage.prototype.{broken} = () => {{ throw new Error('blocked'); }}")
    site.open(page, BLOCKED, DRAFTS)
    hide(page, "Tasks blocked")
    page.get_by_role("button", name="Needs attention").click()
    expect(page.locator("#live")).to_have_text("Live")
    expect(page.locator("#attention-list")).to_be_hidden()
    site.push(BLOCKED, facet("Drafts awaiting review", 4, connector=2))
    page.get_by_role("button", name="Needs attention").click()
    expect(shown(page)).to_have_text(["4 Drafts awaiting review"])
    page.reload()
    expect(shown(page)).to_have_count(2)


@pytest.mark.requirement("F-179")
def test_a_junk_value_in_storage_is_repaired_by_the_next_change(site, page: Page):
    site.open(page, BLOCKED, DRAFTS)
    page.evaluate("""localStorage.setItem(Preferences.KEY, '{"hidden":[1],"collapsed":7}')""")
    page.reload()
    expect(shown(page)).to_have_count(2)
    hide(page, "Tasks blocked")
    stored = page.evaluate("JSON.parse(localStorage.getItem(Preferences.KEY))")
    assert stored == {"hidden": {BLOCKED.key: {"count": "2", "epoch": "1"}}, "collapsed": False}


@pytest.mark.requirement("F-180")
def test_a_second_tab_follows(site, page: Page, context):
    site.open(page, BLOCKED, DRAFTS)
    other = context.new_page()
    other_errors = errors_of(other)
    site.open(other, BLOCKED, DRAFTS)
    hide(page, "Tasks blocked")
    expect(shown(other)).to_have_text(["3 Drafts awaiting review"])
    expect(other).to_have_title("(1) Overview · Acme")
    assert other_errors == []


@pytest.mark.requirement("F-174", "F-175")
def test_members_and_workspaces_in_one_browser_are_independent(site, page: Page):
    site.open(page, BLOCKED, DRAFTS)
    hide(page, "Tasks blocked")
    site.user = 8
    site.open(page, BLOCKED, DRAFTS)
    expect(shown(page)).to_have_count(2)
    site.user, site.slug = 7, "globex"
    site.open(page, BLOCKED, DRAFTS)
    expect(shown(page)).to_have_count(2)
    site.slug = "acme"
    site.open(page, BLOCKED, DRAFTS)
    expect(shown(page)).to_have_count(1)


@pytest.mark.requirement("F-106")
def test_a_connector_that_is_not_ready_has_a_row_that_opens_its_page(site, page: Page):
    site.open(page, down("Mail", Status.RECONNECTION_NEEDED))
    link = page.get_by_role("link", name="Reconnection needed", exact=True)
    expect(link).to_have_attribute("href", "/w/acme/connectors/mail/")
    hide(page, "Reconnection needed")
    expect(page.locator("#live")).to_have_text("Live")
    site.push(down("Mail", Status.FAILED))
    expect(shown(page)).to_have_text(["Failed"])


def test_without_script_every_row_is_there_and_there_is_a_way_to_refresh(browser):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    Site(context).open(page, BLOCKED, INVOICES)
    expect(shown(page)).to_have_text(["2 Tasks blocked", "Invoices to approve"])
    expect(page.locator("#live").get_by_role("link", name="Refresh")).to_be_visible()
    expect(page.locator("#attention-list button")).to_have_count(0)
    expect(page.locator("#attention-foot")).to_be_hidden()
    # Nothing looks as if it could be closed.
    expect(page.locator("#attention-toggle .icon")).to_be_hidden()
    context.close()
