"""The list of a workspace with 100 connectors in Chromium, on the real views and database."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.site import errors_of
from tests.browser.test_shell_page import OPTIONS
from tests.connectors.records import REFUSED, added, failed, ready

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

CONNECTORS = 100
# As bytes of HTML before compression: what a phone has to take apart.
MAX_BYTES = 400_000


@pytest.fixture
def listed(acme):
    """A quarter of each kind, in names that no order of making gives away."""
    for number in range(CONNECTORS // 4):
        ready(acme, f"ready-{number}", name=f"Tickets {number}")
        failed(acme, f"failed-{number}", name=f"Ärger {number} " + "of a long name " * 3)
        failed(acme, f"refused-{number}", outcome=REFUSED, name=f"Mail {number}")
        added(acme, f"rest-{number}", name=f"Archive {number}")


@pytest.fixture
def page(browser, listed, alice_client, live_server):
    # Its script is injected, which the page's own policy would refuse.
    context = browser.new_context(bypass_csp=True)
    cookie = alice_client.cookies["overview_session"]
    context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": live_server.url}])
    page = context.new_page()
    found = errors_of(page)
    page.goto(f"{live_server.url}/w/acme/connectors/")
    yield page
    context.close()
    assert found == []


def lines(page: Page):
    """The lines of whichever form is shown."""
    return page.locator("tbody tr:visible, .cards > li:visible")


def test_a_hundred_connectors_are_searched_and_filtered_by_keyboard_on_any_screen(page: Page):
    expect(lines(page)).to_have_count(CONNECTORS)
    assert len(page.content()) < MAX_BYTES
    # The worst first.
    expect(lines(page).first).to_contain_text("Failed")
    expect(lines(page).last).to_contain_text("Not connected")
    page.get_by_role("link", name="Reconnection needed 25").press("Enter")
    expect(lines(page)).to_have_count(25)
    chosen = page.get_by_role("navigation", name="Status").locator("[aria-current]")
    expect(chosen).to_have_text("Reconnection needed 25")
    # A search stays within what is chosen, and a choice within what is searched.
    search_for(page, "MAIL 1")
    expect(lines(page)).to_have_count(11)
    expect(chosen).to_have_text("Reconnection needed 11")
    page.get_by_role("link", name="All 11").press("Enter")
    search_for(page, "äRGER 7")
    expect(lines(page)).to_have_count(1)
    search_for(page, "nothing")
    expect(lines(page)).to_have_count(0)
    page.get_by_role("link", name="Show all connectors").press("Enter")
    for width in (1280, 360):
        page.set_viewport_size({"width": width, "height": 740})
        expect(lines(page)).to_have_count(CONNECTORS)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        last = lines(page).last.get_by_role("link")
        last.focus()
        expect(last).to_be_in_viewport()
    # The form of a small screen; the table is looked at with all other pages.
    found = Axe().run(page, options=OPTIONS).response["violations"]
    assert [(each["id"], [node["html"] for node in each["nodes"]][:3]) for each in found] == []
    # Each line's button says whose it is, to those who hear it alone.
    page.get_by_role("button", name="Reconnect Mail 24").press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Mail 24")
    message = page.locator(".message")
    expect(message).to_have_text("Mail 24 is reconnecting.")
    expect(message).to_be_focused()


def search_for(page: Page, words: str) -> None:
    page.get_by_label("Search by name").fill(words)
    page.keyboard.press("Enter")
