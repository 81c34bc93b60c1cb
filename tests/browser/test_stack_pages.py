"""What holds for every page of the product, with data on it, on the real stack."""

from __future__ import annotations

import re
from contextlib import ExitStack
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, Request, Response, Route, expect

from tests.browser.house import NO_PAGES, OVER, House, furnish, site_names
from tests.browser.place import Place
from tests.browser.test_shell_page import OPTIONS

pytestmark = pytest.mark.browser

# The rules that look at colours: the only ones that a scheme can break.
OF_COLOURS = ["color-contrast", "link-in-text-block"]


@pytest.fixture(scope="module")
def house(stack, browser, tmp_path_factory):
    with ExitStack() as held:
        place = Place(stack, browser, held)
        yield furnish(place, tmp_path_factory.mktemp("house"))
        # Chromium itself prints a line for each page that comes with such a status.
        refused = re.compile("status of (400|404|410|422)")
        assert [text for text in place.complaints if not refused.search(text)] == []


def test_every_address_shows_a_page_or_is_known_to_show_none(house: House):
    assert site_names().keys() >= NO_PAGES | OVER.keys()
    page = house.open()
    statuses: dict[str, int] = {}

    def note(response: Response) -> None:
        statuses[response.url] = response.status

    page.on("response", note)
    for name, path in house.visit(page):
        if name in house.names:
            assert page.url == house.place.stack.url + path
            assert (name, statuses[page.url]) == (name, OVER.get(name, 200))
        expect(page.get_by_role("heading", level=1)).to_have_count(1)


def test_axe_finds_nothing_on_any_page_in_light_and_dark(house: House):
    # Its script is injected, which the page's own policy would refuse.
    page = house.open(bypass_csp=True)
    found: list[Any] = []

    def look(name: str, options: dict[str, Any]) -> None:
        for each in Axe().run(page, options=options).response["violations"]:
            found.append((name, each["id"], [node["html"] for node in each["nodes"]][:3]))

    for name, _ in house.visit(page):
        page.emulate_media(color_scheme="light")
        look(name, OPTIONS)
        page.emulate_media(color_scheme="dark")
        look(f"{name} in dark", {"runOnly": {"type": "rule", "values": OF_COLOURS}})
    assert found == []


def test_no_page_scrolls_sideways_on_a_phone_or_at_four_times_the_size(house: House):
    page = house.open()
    wide = []
    for name, _ in house.visit(page):
        # 320 by 256 is what 400 % leaves of 1280 by 1024.
        for width, height in ((1280, 1024), (360, 740), (320, 256)):
            page.set_viewport_size({"width": width, "height": height})
            if not page.evaluate("document.documentElement.scrollWidth <= innerWidth"):
                wide.append((name, width))
    assert wide == []


def test_everything_that_can_be_pressed_is_reached_by_tab_with_a_focus_that_shows(house: House):
    page = house.open()
    missed = {name: unreached(page) for name, _ in house.visit(page)}
    assert {name: texts for name, texts in missed.items() if texts} == {}


def unreached(page: Page) -> list[str]:
    """What can be pressed and is not reached by Tab, or shows nothing when it has the focus."""
    presses = page.evaluate("""() => {
        const interactive = "a[href], button, input, select, textarea, summary, [tabindex='0']";
        globalThis.left = new Set([...document.querySelectorAll(interactive)].filter(
            (each) => each.checkVisibility({ visibilityProperty: true }) && !each.disabled
                && each.type !== "hidden" && each.tabIndex >= 0,
        ));
        // Of a group of radio buttons, Tab reaches the one that is chosen.
        for (const each of left) if (each.type === "radio" && !each.checked) left.delete(each);
        document.activeElement.blur();
        const shows = ({ outlineStyle, outlineWidth }) =>
            outlineStyle !== "none" && parseFloat(outlineWidth) >= 2;
        addEventListener("focusin", ({ target }) => {
            const looks = [getComputedStyle(target), getComputedStyle(target, "::after")];
            if (looks.some(shows)) left.delete(target);
        });
        // Each part of a date and time is a stop of its own.
        const dates = [...left].filter(({ type }) => /^(date|time)/.test(type)).length;
        return left.size + 8 * dates + 5;
    }""")
    for _ in range(presses):
        page.keyboard.press("Tab")
    texts: list[str] = page.evaluate("[...left].map((each) => each.outerHTML.slice(0, 200))")
    return texts


def test_forced_colours_and_reduced_motion_leave_every_page_readable(house: House):
    page = house.open(forced_colors="active", reduced_motion="reduce")
    for name, _ in house.visit(page, answers=False):
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        assert page.evaluate("document.getAnimations().length") == 0, name


def test_a_double_click_on_any_button_sends_its_form_once(house: House):
    page = house.open()
    seen: set[tuple[str, str]] = set()
    sent: list[str] = []

    def is_post(request: Request) -> bool:
        return request.method == "POST"

    def hold(route: Route) -> None:
        if is_post(route.request):
            route.fulfill(status=204)  # Nothing is done, and the page stays.
        else:
            route.continue_()

    page.route("**/*", hold)
    page.on("request", lambda request: sent.append(request.url) if is_post(request) else None)
    for _, path in house.visit(page, answers=False):
        forms = set()
        for button in page.locator("form[method=post] button[type=submit]").all():
            form = button.evaluate("(each) => each.form.action")
            act = (form, button.inner_text())
            if act in seen or not button.is_visible():
                continue
            if form in forms:
                page.goto(house.place.stack.url + path)  # One that was sent is not sent again.
            forms.add(form)
            seen.add(act)
            with page.expect_request(is_post):
                button.dblclick()
        assert len(sent) == len(seen), path
    assert len(seen) > 20
