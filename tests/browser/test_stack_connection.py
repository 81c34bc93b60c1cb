"""What an open page does when its server, its session or its network goes, on the real stack."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, WebSocketRoute, expect

from tests.browser.place import Place, live
from tests.browser.stack import Stack
from tests.browser.test_panel_page import shown
from tests.browser.test_stack_live import SOON, sees

pytestmark = pytest.mark.browser

# What Chromium itself prints when it cannot reach a server, or is turned away by it; nothing else
# may be printed.
UNREACHABLE = re.compile(r"ERR_(CONNECTION_|EMPTY_|INTERNET_)|^WebSocket connection to \S+ failed")
TURNED_AWAY = re.compile(r"status of 40[14]")


def forgive(place: Place, printed: re.Pattern[str]) -> None:
    place.complaints[:] = [text for text in place.complaints if not printed.search(text)]


def has_ended(page: Page, words: str, href: str) -> None:
    link = page.locator("#live").get_by_role("link", name=words)
    expect(link).to_have_attribute("href", re.compile(re.escape(href)), timeout=SOON)


def test_a_restarted_server_is_said_and_the_page_is_live_and_fresh_again(
    place: Place, stack: Stack
):
    server = place.tasks(drafts=3)
    page = live(place.open())
    sees(page, "3 Drafts awaiting review")
    page.evaluate("document.mine = true")
    stack.stop_web()
    expect(page.locator("#live")).to_have_text(
        re.compile(r"^Reconnecting… last updated \d"), timeout=SOON
    )
    sees(page, "3 Drafts awaiting review")
    server.count(blocked=2, drafts=1)
    stack.start_web()
    expect(page.locator("#live")).to_have_text("Live", timeout=40_000)
    sees(page, "2 Tasks blocked", "1 Drafts awaiting review")
    server.count(blocked=1)
    sees(page, "1 Tasks blocked", "1 Drafts awaiting review")
    assert page.evaluate("document.mine")
    forgive(place, UNREACHABLE)


def test_a_member_who_is_removed_is_told_at_once_and_the_page_stops_asking(place: Place):
    place.add_member("bob")
    server = place.tasks(drafts=3)
    page = live(place.open("bob"))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    admin = place.open(path="members/")
    admin.get_by_role("link", name="Change bob").click()
    admin.get_by_role("link", name="Remove member").click()
    admin.get_by_role("button", name="Remove member").click()
    has_ended(page, "You no longer have access", "/")
    expect(page.locator("#announcer")).to_have_text("You no longer have access")
    asked.clear()
    live(place.open())
    server.count(drafts=4)
    sees(live(place.open()), "4 Drafts awaiting review")
    assert asked == []
    assert page.goto(place.url()).status == 404
    forgive(place, TURNED_AWAY)


def test_a_session_that_ends_in_another_tab_is_told_and_leads_back_here(place: Place):
    place.tasks(drafts=3)
    page = live(place.open())
    other = place.watch(page.context.new_page())
    other.goto(place.url("settings/"))
    other.get_by_role("button", name="Account").click()
    other.get_by_role("button", name="Sign out").click()
    has_ended(page, "Signed out. Sign in again", f"/sign-in/?next=/w/{place.slug}/")
    place.enter(other, "alice")
    page.locator("#live").get_by_role("link").click()
    expect(page).to_have_url(place.url())
    # It may have looked for what is new before it was told.
    forgive(place, TURNED_AWAY)


def test_offline_is_said_and_the_page_catches_up(place: Place):
    server = place.tasks(drafts=3)
    page = live(place.open())
    sees(page, "3 Drafts awaiting review")
    page.context.set_offline(True)
    expect(page.locator("#live")).to_have_text(re.compile("^Offline – last updated "))
    server.count(blocked=2)
    # Somebody else's page has seen it before this one is back.
    sees(live(place.open()), "2 Tasks blocked", "3 Drafts awaiting review")
    page.context.set_offline(False)
    live(page)
    sees(page, "2 Tasks blocked", "3 Drafts awaiting review")
    forgive(place, UNREACHABLE)


def test_a_socket_that_flaps_every_two_seconds_costs_little_and_ends_fresh(place: Place):
    server = place.tasks(drafts=3)
    page = place.open(path="settings/")
    sockets: list[WebSocketRoute] = []
    fragments: list[Any] = []

    def through(socket: WebSocketRoute) -> None:
        socket.connect_to_server()
        sockets.append(socket)

    page.route_web_socket("**/ws/**", through)
    page.on("request", lambda each: fragments.append(each) if "/panel/" in each.url else None)
    page.goto(place.url())
    sees(page, "3 Drafts awaiting review")
    for count in (4, 5, 6):
        live(page)
        # The pause is the read that the worker makes meanwhile, two seconds at most.
        server.count(drafts=count)
        sees(page, f"{count} Drafts awaiting review")
        sockets[-1].close(code=1012)
    expect(page.locator("#live")).to_have_text("Live", timeout=40_000)
    server.count(blocked=1)
    sees(page, "1 Tasks blocked", "6 Drafts awaiting review")
    assert len(sockets) < 10
    assert len(fragments) < 20


def test_without_script_rows_and_acts_are_there(place: Place):
    place.tasks(blocked=2, drafts=3)
    watching = live(place.open())
    sees(watching, "2 Tasks blocked", "3 Drafts awaiting review")
    page = place.open(java_script_enabled=False)
    expect(shown(page)).to_have_text(["2 Tasks blocked", "3 Drafts awaiting review"])
    expect(page.locator("#attention button.iconbtn")).to_have_count(0)
    page.get_by_role("link", name="Refresh").click()
    expect(shown(page)).to_have_count(2)
    page.get_by_role("link", name="2 Tasks blocked").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Tasks")
    page.get_by_role("link", name="Connector details").click()
    page.get_by_role("button", name="Disconnect").click()
    expect(page.locator(".message")).to_contain_text("Tasks is disconnected.")
    page.get_by_role("button", name="Account").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page).to_have_title("Sign in")
    expect(watching.locator("#attention")).to_have_count(0)
