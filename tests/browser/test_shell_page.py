"""The shell around every page, and what holds for the whole look: axe, themes, widths, weight."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.conf import settings
from playwright.sync_api import Page, expect

from connectors.status import Status
from tests.browser.site import ORIGIN, Site, down, facet
from tests.browser.test_panel_page import focused, hide, shown

pytestmark = pytest.mark.browser

ROWS = [
    facet("Tasks blocked", 2, "critical"),
    down("Mail", Status.RECONNECTION_NEEDED),
    facet("Drafts awaiting review", 3, app="Outbound", connector=2, age_seconds=400),
    facet("Invoices to approve", None, app="Books", connector=3, href=None),
    facet("Replies received", 12, "info", app="Outbound", connector=2),
]
SCRIPTS = ("page.js", "preferences.js", "overview.js")
OPTIONS = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
}


def a_full_page(count: int = 3) -> dict[str, Any]:
    """Apps and connectors for the overview's other sections."""
    checked = datetime.now(UTC) - timedelta(minutes=2)
    apps = [
        SimpleNamespace(
            label=f"App {n}",
            href=f"/w/acme/app/app-{n}" if n else None,
            status="ready",
            status_label="Ready",
        )
        for n in range(count)
    ]
    health = [
        SimpleNamespace(
            name=f"Connector {status}",
            href=f"/w/acme/connectors/{status}/",
            status=status,
            status_label=status.replace("_", " ").capitalize(),
            checked_at=checked,
            latency_ms=84 if status == "ready" else None,
        )
        for status in ("reconnection_needed", "failed", "starting", "ready", "at_rest")
    ]
    return {"apps": apps, "health": health, "connector_count": count}


def workspaces(count: int) -> list[SimpleNamespace]:
    names = ["acme", *(f"team-{n}" for n in range(1, count))]
    return [SimpleNamespace(slug=name, name=name.capitalize()) for name in names]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(browser, scheme):
    # Its script is injected, which the page's own policy would refuse.
    context = browser.new_context(bypass_csp=True, color_scheme=scheme)
    page = context.new_page()
    site = Site(context)
    site.page_context = a_full_page() | {"nav_workspaces": workspaces(9)}
    site.open(page, *ROWS, checking=2)
    hide(page, "Replies received")
    page.get_by_role("button", name="Hidden (1)").click()
    page.get_by_role("button", name="Workspace: Acme").click()
    expect(page.get_by_text("Checking 2 connectors…")).to_be_visible()
    found = Axe().run(page, options=OPTIONS).response["violations"]
    assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in found] == []
    context.close()


@pytest.mark.parametrize("width", [1280, 360, 320])
def test_no_width_scrolls_sideways(site, page: Page, width):
    page.set_viewport_size({"width": width, "height": 700})
    site.page_context = a_full_page() | {"nav_workspaces": workspaces(3)}
    long = facet("W" * 300, "9" * 60, app="A" * 90, connector=4)
    site.open(page, *ROWS, long)
    expect(shown(page)).to_have_count(6)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize(
    ("theme", "background"), [("light", "rgb(247, 247, 248)"), ("dark", "rgb(19, 20, 23)")]
)
def test_a_chosen_theme_wins_over_the_system(site, page: Page, theme, background):
    page.emulate_media(color_scheme="dark" if theme == "light" else "light")
    site.page_context = {"request": SimpleNamespace(COOKIES={"theme": theme})}
    site.open(page, *ROWS)
    expect(page.locator("html")).to_have_css("background-color", background)


def test_the_whole_panel_can_be_worked_by_keyboard(site, page: Page):
    site.open(page, *ROWS[:2])
    expect(page.locator("#live")).to_have_text("Live")
    seen = []
    for _ in range(12):
        page.keyboard.press("Tab")
        seen.append(focused(page).strip())
    assert seen[0] == "Skip to content"
    panel = seen[seen.index("Needs attention") :]
    assert panel[:5] == [
        "Needs attention",
        "2 Tasks blocked",
        "Hide “Tasks blocked” until it changes",
        "Reconnection needed",
        "Hide “Reconnection needed” until it changes",
    ]


def test_the_switcher_lists_filters_and_gives_the_focus_back(site, page: Page):
    site.page_context = {"nav_workspaces": workspaces(9)}
    site.open(page, *ROWS)
    button = page.get_by_role("button", name="Workspace: Acme")
    button.press("Enter")
    menu = page.get_by_role("navigation", name="Workspaces")
    expect(menu.get_by_role("link", name="Acme")).to_have_attribute("aria-current", "true")
    menu.get_by_role("textbox", name="Filter workspaces").fill("eam-3")
    expect(menu.locator("li:visible")).to_have_text(["Team-3"])
    page.keyboard.press("Escape")
    expect(menu).to_be_hidden()
    expect(button).to_be_focused()


def test_a_single_workspace_is_plain_text(site, page: Page):
    site.open(page, *ROWS)
    expect(page.locator(".top__name")).to_have_text("Acme")
    expect(page.locator(".top__name button")).to_have_count(0)


def test_the_shell_works_without_script(browser):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    site = Site(context)
    site.page_context = {"nav_workspaces": workspaces(3)}
    site.open(page, *ROWS)
    page.get_by_role("button", name="Workspace: Acme").click()
    expect(page.get_by_role("link", name="Team-2")).to_be_visible()
    expect(page.get_by_role("link", name="All workspaces")).to_be_visible()
    context.close()


@pytest.mark.parametrize("template", ["404.html", "403.html", "500.html"])
def test_an_error_page_has_a_heading_and_a_way_back(site, page: Page, template):
    site.answers["/broken/"] = site.html(template)
    page.goto(f"{ORIGIN}/broken/")
    expect(page.get_by_role("heading", level=1)).to_have_count(1)
    expect(page.get_by_role("main").get_by_role("link")).to_have_count(1)


def test_the_overview_is_light_in_requests_and_bytes(site, page: Page):
    site.page_context = a_full_page(50)
    rows = [facet(f"Things to look at {n}", n + 1, connector=n % 20 + 1) for n in range(60)]
    site.open(page, *rows)
    expect(page.locator("#live")).to_have_text("Live")
    assert len(site.requests) <= 6
    html = site.html("overview/overview.html").encode()
    assert len(html) <= 60_000
    assert len(gzip.compress(html)) <= 15_000
    static = settings.BASE_DIR / "static"
    scripts = b"".join((static / "js" / name).read_bytes() for name in SCRIPTS)
    assert len(gzip.compress(scripts)) <= 12_000
    assert len(gzip.compress((static / "css" / "app.css").read_bytes())) <= 6_000
