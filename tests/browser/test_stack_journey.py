"""What people do from page to page, on the real stack: nothing but the pages tells them how."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.place import Place, live
from tests.browser.test_panel_page import hide, shown
from tests.browser.test_stack_live import SOON, sees

pytestmark = pytest.mark.browser

TOKEN = re.compile(r"^nb_[\w-]{43}$")


def says(page: Page, words: str) -> None:
    expect(page.locator(".message")).to_contain_text(words)


def press(page: Page, *names: str) -> None:
    for name in names:
        page.get_by_role("button", name=name, exact=True).click()


def follow(page: Page, *names: str) -> None:
    for name in names:
        page.get_by_role("link", name=name).first.click()


def fill_in(page: Page, name: str, url: str) -> None:
    page.get_by_label("Name", exact=True).first.fill(name)
    page.get_by_label("Address").fill(url)


def test_a_newcomer_connects_a_server_hides_a_row_gets_it_back_and_lets_the_server_go(
    place: Place,
):
    server = place.serve(drafts=3)
    page = place.open()
    expect(page.get_by_text("No apps yet. Connect a server to add one.")).to_be_visible()
    follow(page, "Add connector")
    press(page, "Add and connect")
    expect(page.locator(".errors")).to_be_focused()
    fill_in(page, "Outbound", server.url)
    page.get_by_text("Placements", exact=False).first.click()
    placement = page.get_by_role("group", name="Placement 1")
    placement.get_by_label("Slot").fill("sidebar.apps")
    placement.get_by_label("Route").fill("outbound")
    placement.get_by_label("Label").fill("Outbound")
    press(page, "Add and connect")
    says(page, "Outbound is added and connecting.")
    expect(page.locator("#standing")).to_have_text("Ready", timeout=SOON)
    expect(page.get_by_role("region", name="Facets")).to_contain_text("Drafts awaiting review")

    follow(page, "Overview")
    live(page)
    sees(page, "3 Drafts awaiting review")
    hide(page, "Drafts awaiting review")
    press(page, "Hidden (1) – show", "Show again: Drafts awaiting review")
    sees(page, "3 Drafts awaiting review")
    follow(page, "3 Drafts awaiting review")
    expect(page).to_have_url(place.url("app/outbound"))

    follow(page, "Connector details")
    press(page, "Disconnect")
    says(page, "Outbound is disconnected.")
    expect(page.locator("#standing")).to_contain_text("Disconnected")
    follow(page, "Overview")
    live(page)
    expect(shown(page)).to_have_count(0)
    follow(page, "Connectors", "Outbound")
    page.locator(".problem").get_by_role("button", name="Connect").click()
    expect(page.locator("#standing")).to_have_text("Ready", timeout=SOON)
    follow(page, "Overview")
    sees(live(page), "3 Drafts awaiting review")

    follow(page, "Connectors", "Outbound", "Remove Outbound")
    press(page, "Remove Outbound")
    expect(page.locator(".errors")).to_be_focused()
    page.get_by_role("textbox").fill("Outbound")
    press(page, "Remove Outbound")
    says(page, "Outbound is removed.")
    assert place.connectors() == {}
    forgive_refused_forms(place, 2)


def forgive_refused_forms(place: Place, count: int) -> None:
    """Chromium prints a line for each page that comes with status 422: a form with errors."""
    printed = [text for text in place.complaints if "status of 422" in text]
    assert len(printed) <= count
    place.complaints[:] = [text for text in place.complaints if text not in printed]


def test_after_a_post_the_back_button_shows_what_is_true_and_posts_nothing(place: Place):
    server = place.tasks(drafts=3)
    page = place.open(path="connectors/tasks/")
    posts: list[str] = []
    page.on("request", lambda each: posts.append(each.url) if each.method == "POST" else None)
    press(page, "Disconnect")
    says(page, "Tasks is disconnected.")
    assert len(posts) == 1
    page.go_back()
    expect(page.locator("#standing")).to_contain_text("Disconnected")
    page.go_forward()
    expect(page.locator("#standing")).to_contain_text("Disconnected")
    page.goto(place.url("connectors/add/"))
    fill_in(page, "Second", server.url)
    press(page, "Add")
    says(page, "Second is added.")
    page.go_back()
    press(page, "Add")
    expect(page.locator(".errors")).to_be_focused()
    assert set(place.connectors()) == {"tasks", "second"}
    forgive_refused_forms(place, 1)


@pytest.mark.parametrize("scripting", [True, False])
def test_a_double_click_acts_once(place: Place, scripting: bool):
    server = place.serve()
    page = place.open(path="connectors/add/", java_script_enabled=scripting)

    def double_click(name: str) -> None:
        page.get_by_role("button", name=name).dblclick()
        # Without script the second one is answered: that it is done already.
        expect(page.locator(".message, .errors, #token").first).to_be_visible()

    fill_in(page, "Tasks", server.url)
    double_click("Add and connect")
    page.goto(place.url("tokens/"))
    page.get_by_label("Name").fill("Desk")
    double_click("Create token")
    # Whichever of two answers a browser shows, the token is in it.
    expect(page.get_by_label("Token", exact=True)).to_have_value(TOKEN)
    headers = {"Authorization": f"Bearer {page.get_by_label('Token', exact=True).input_value()}"}
    endpoint = f"{place.stack.url}/mcp/{place.slug}"
    assert page.request.post(endpoint, headers=headers, data={}).status != 401
    page.goto(place.url("members/"))
    page.get_by_label("Email").fill(place.person("alice"))
    double_click("Add member")
    page.goto(place.url("connectors/tasks/"))
    double_click("Disconnect")
    assert place.connectors() == {"tasks": "at_rest"}
    tokens = place.stack.manage("token", "list", place.slug)["tokens"]
    assert [token["name"] for token in tokens] == ["Desk"]
    forgive_refused_forms(place, 3)


def test_a_token_is_shown_once_copied_and_opens_the_endpoint(place: Place):
    page = place.open(path="tokens/")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    press(page, "Copy the address")
    expect(page.locator("#announcer")).to_have_text("Copied.")
    address = page.evaluate("navigator.clipboard.readText()")
    assert address == f"{place.stack.url}/mcp/{place.slug}"
    page.get_by_label("Name").fill("Desk")
    press(page, "Create token")
    field = page.get_by_label("Token", exact=True)
    expect(field).to_have_value(TOKEN)
    press(page, "Copy the token")
    token = field.input_value()
    assert page.evaluate("navigator.clipboard.readText()") == token
    page.reload()
    page.goto(place.url("tokens/"))
    expect(page.get_by_role("heading", name="Desk")).to_be_visible()
    assert token not in page.content()
    answers = [
        page.request.post(address, headers=headers, data={}).status
        for headers in ({}, {"Authorization": f"Bearer {token}"})
    ]
    assert answers[0] == 401
    assert answers[1] != 401
    forgive_refused_forms(place, 1)


def test_a_problem_says_what_to_do_its_details_can_be_copied_and_reconnecting_ends_it(place: Place):
    server = place.tasks()
    server.refuse(401)
    assert place.stack.manage("connector", "check", place.slug, "tasks")["status"] != "ready"
    page = place.open(path="connectors/tasks/")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    expect(page.locator("#standing")).to_have_text("Reconnection needed")
    page.get_by_text("Technical details").click()
    press(page, "Copy the technical details")
    shown_text = page.locator("#problem-detail").inner_text()
    assert page.evaluate("navigator.clipboard.readText()") == shown_text
    server.refuse(200)
    press(page, "Reconnect")
    expect(page.locator("#standing")).to_have_text("Ready", timeout=SOON)
    press(page, "Check now")
    says(page, "Tasks is being checked.")
    expect(page.locator("#connector")).not_to_have_attribute("data-pending", "", timeout=SOON)


def test_an_overlap_is_found_from_its_warning_and_settled(place: Place):
    template = {"uriTemplate": "crm://contacts/{id}", "name": "contact"}
    for name in ("CRM", "Legacy"):
        server = place.serve({})
        server.raw.on("resources/templates/list", {"resourceTemplates": [template]})
        place.connect(name, server.url)
    page = place.open(path="connectors/")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    follow(page, "2 URI templates overlap")
    page.get_by_label("URI", exact=True).fill("crm://contacts/42")
    press(page, "Check URI")
    expect(page.locator("#answer")).to_contain_text("both serve it: ambiguous")
    example = page.get_by_role("article").locator("h3 code").inner_text()
    press(page, f"Copy {example}")
    assert page.evaluate("navigator.clipboard.readText()") == example
    press(page, "Disconnect Legacy")
    says(page, "is now served by CRM.")
    expect(page.get_by_text("No overlaps.")).to_be_visible()
    page.go_back()
    expect(page.get_by_text("No overlaps.")).to_be_visible()
    assert place.connectors() == {"crm": "ready", "legacy": "at_rest"}
