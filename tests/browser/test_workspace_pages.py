"""Signing in, members, tokens and settings in Chromium, on the real views and database."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.sessions.models import Session
from django.utils import timezone
from playwright.sync_api import Page, expect

from tests.browser.site import box_of
from tests.browser.test_shell_page import OPTIONS
from tests.connectors.records import added
from workspaces.actions import create_token, record_act
from workspaces.models import ApiToken

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

TOKEN = re.compile(r"^nb_[\w-]{43}$")
PAGES = [
    "/sign-in/link/MQ/a-b/",
    "/workspaces/",
    "/w/acme/members/",
    "/w/acme/members/{bob}/",
    "/w/acme/members/{bob}/remove/",
    "/w/acme/settings/",
    "/w/acme/settings/appearance/",
    "/w/acme/tokens/",
    "/w/acme/tokens/{token}/revoke/",
    "/w/acme/audit/",
]


@pytest.fixture
def here(live_server, acme, alice, bob):
    """The whole address of a path."""
    token, _ = create_token(acme, bob, "Laptop", allowed_tools=["crm__*"])
    return lambda path: live_server.url + path.format(bob=bob.pk, token=token.pk)


@pytest.fixture
def enter(alice_client, live_server):
    """Make a browser context Alice's."""
    cookie = alice_client.cookies["overview_session"]

    def enter(context):
        context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": live_server.url}])

    return enter


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_any_page_or_error(browser, here, enter, scheme):
    # Its script is injected, which the page's own policy would refuse.
    context = browser.new_context(bypass_csp=True, color_scheme=scheme)
    page = context.new_page()
    axe = Axe()

    def findings():
        found = axe.run(page, options=OPTIONS).response["violations"]
        return [(page.url, each["id"], [node["html"] for node in each["nodes"]]) for each in found]

    page.goto(here("/sign-in/"))
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator(".errors")).to_be_focused()
    found = findings()
    enter(context)
    for path in PAGES:
        page.goto(here(path))
        found += findings()
    for path, button in [("/w/acme/tokens/", "Create token"), ("/w/acme/members/", "Add member")]:
        page.goto(here(path))
        page.get_by_role("button", name=button).click()
        expect(page.locator(".errors")).to_be_focused()
        found += findings()
    assert found == []
    context.close()


@pytest.mark.parametrize("width", [1280, 320])
def test_no_page_scrolls_sideways(page: Page, here, enter, acme, bob, width):
    enter(page.context)
    acme.name, bob.name = "W" * 100, "\u202e" + "W" * 149
    acme.save()
    bob.save()
    create_token(acme, bob, "W" * 100, allowed_tools=["w" * 128])
    page.set_viewport_size({"width": width, "height": 700})
    for path in PAGES:
        page.goto(here(path))
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path


def test_tabs_are_one_row_with_the_current_one_in_sight(page: Page, errors, here, enter):
    enter(page.context)
    page.set_viewport_size({"width": 360, "height": 700})
    page.goto(here("/w/acme/audit/"))
    tabs = page.get_by_role("navigation", name="Settings")
    current = tabs.get_by_role("link", name="Audit")
    assert len({box_of(each)["y"] for each in tabs.get_by_role("link").all()}) == 1
    assert box_of(current)["x"] + box_of(current)["width"] <= 360
    first = tabs.get_by_role("link", name="General")
    assert box_of(first)["x"] < 0
    page.locator("main").focus()
    page.keyboard.press("Tab")
    expect(first).to_be_focused()
    assert box_of(first)["x"] >= 0


@pytest.mark.parametrize("width", [1280, 360])
def test_addresses_of_people_and_what_is_chosen_keep_their_shape(
    page: Page, errors, here, enter, acme, alice, width
):
    """An address in the audit takes one line, whatever else stands beside it; the buttons of a
    choice are as large as each other, however long its words."""
    enter(page.context)
    page.set_viewport_size({"width": width, "height": 700})
    alice.name = ""
    alice.save()
    record_act(acme, "connector added", "w" * 200, by=alice)
    page.goto(here("/w/acme/audit/"))
    who = page.get_by_text("alice@example.com").locator("visible=true")
    assert box_of(who)["height"] < 30
    page.goto(here("/w/acme/members/{bob}/"))
    buttons = [box_of(each) for each in page.get_by_role("radio").all()]
    assert len({(each["width"], each["height"]) for each in buttons}) == 1


def test_the_span_of_time_is_one_pair_of_fields(page: Page, errors, here, enter):
    enter(page.context)
    for width in (1280, 980, 700):
        page.set_viewport_size({"width": width, "height": 700})
        page.goto(here("/w/acme/traces/"))
        tops = {box_of(page.get_by_label(each, exact=True))["y"] for each in ("From", "To")}
        assert len(tops) == 1, width


def test_signing_in_by_keyboard_alone(page: Page, errors, here):
    page.goto(here("/w/acme/tokens/"))
    expect(page).to_have_title("Sign in")
    for key in ["Tab", "Tab", "Tab"]:
        page.keyboard.press(key)
    expect(page.get_by_label("Email")).to_be_focused()
    page.keyboard.type("alice@example.com")
    page.keyboard.press("Tab")
    page.keyboard.type("wrong")
    page.keyboard.press("Enter")
    expect(page.locator(".errors")).to_be_focused()
    expect(page.locator(".errors")).to_contain_text("Email or password is wrong.")
    expect(page.get_by_label("Email")).to_have_value("alice@example.com")
    page.get_by_label("Password", exact=True).fill("Alice-secret-1")
    page.get_by_role("button", name="Show password").click()
    expect(page.get_by_label("Password", exact=True)).to_have_attribute("type", "text")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    expect(page).to_have_title("Tokens · Acme")


def test_a_button_pressed_after_the_session_ended_leads_back_to_its_page(
    page: Page, errors, here, enter, acme
):
    added(acme, "mail")
    enter(page.context)
    page.goto(here("/w/acme/connectors/mail/"))
    Session.objects.all().delete()
    page.get_by_role("button", name="Connect").first.click()
    page.get_by_label("Email").fill("alice@example.com")
    page.get_by_label("Password", exact=True).fill("Alice-secret-1")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Mail")
    expect(page.locator("#standing")).to_have_text("Not connected")
    assert page.url == here("/w/acme/connectors/mail/")


@pytest.mark.parametrize("scripting", [True, False])
def test_a_token_is_shown_once_and_not_again_by_reload_or_back(browser, here, enter, scripting):
    context = browser.new_context(java_script_enabled=scripting)
    enter(context)
    page = context.new_page()
    page.goto(here("/w/acme/tokens/"))
    page.get_by_label("Name").fill("Desk")
    page.get_by_role("button", name="Create token").click()
    expect(page.get_by_label("Token", exact=True)).to_have_value(TOKEN)
    text = page.get_by_label("Token", exact=True).input_value()
    # As a form that was sent twice: for a minute, to the page that holds the token already.
    page.reload()
    expect(page.get_by_label("Token", exact=True)).to_have_value(text)
    ApiToken.objects.update(created_at=timezone.now() - timedelta(minutes=1))
    page.reload()
    expect(
        page.get_by_role("link", name="You already have a token with this name.")
    ).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", name="Desk")).to_be_visible()
    assert text not in page.content()
    assert ApiToken.objects.filter(name="Desk").count() == 1
    context.close()


def test_the_token_is_copied_with_a_button(page: Page, errors, here, enter):
    enter(page.context)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(here("/w/acme/tokens/"))
    page.get_by_label("Name").fill("Desk")
    page.get_by_role("button", name="Create token").click()
    page.get_by_role("button", name="Copy the token").click()
    expect(page.locator("#announcer")).to_have_text("Copied.")
    shown = page.get_by_label("Token", exact=True).input_value()
    assert page.evaluate("navigator.clipboard.readText()") == shown


def test_the_appearance_is_chosen_without_script(browser, here, enter):
    context = browser.new_context(java_script_enabled=False, color_scheme="light")
    enter(context)
    page = context.new_page()
    page.goto(here("/w/acme/settings/appearance/"))
    page.get_by_label("Dark").check()
    page.get_by_role("button", name="Save appearance").click()
    expect(page.locator("html")).to_have_css("background-color", "rgb(19, 20, 23)")
    page.goto(here("/workspaces/"))
    expect(page.locator("html")).to_have_css("background-color", "rgb(19, 20, 23)")
    context.close()
