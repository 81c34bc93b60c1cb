"""A connector's page while its server is on the way, and the page that says what is wrong with it:
on the real stack."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import APIResponse, Page, Route, expect

from tests.browser.counted import Counted
from tests.browser.house import DIAGNOSIS_MS
from tests.browser.place import Place
from tests.browser.test_live_page import stopped_clock
from tests.browser.test_shell_page import OPTIONS
from tests.browser.test_stack_journey import press, says
from tests.browser.test_stack_live import SOON

pytestmark = pytest.mark.browser

SECRET = "hush-hush-4711"


@contextmanager
def held(server: Counted) -> Iterator[None]:
    """The server answers nobody before the end of the block."""
    is_held = True

    async def wait(_: object) -> None:
        while is_held:
            await asyncio.sleep(0.01)

    server.raw.intercept = wait
    try:
        yield
    finally:
        is_held = False
        server.raw.intercept = None


def stands(page: Page, words: str) -> None:
    expect(page.locator("#standing")).to_have_text(words, timeout=SOON)


def problem(page: Page) -> Any:
    return page.locator("section.problem")


def added(place: Place, server: Counted, *words: str) -> None:
    place.stack.manage(
        "connector", "add", place.slug, "tasks", server.url, "--name", "Tasks", *words
    )


def test_the_page_of_a_starting_connector_becomes_that_of_a_ready_one(place: Place):
    server = place.serve(drafts=3)
    added(place, server)
    page = place.open(path="connectors/tasks/")
    with held(server):
        problem(page).get_by_role("button", name="Connect").click()
        says(page, "Tasks is connecting.")
        stands(page, "Starting…")
        expect(problem(page)).to_contain_text("The result shows here in a few seconds.")
        page.evaluate("document.mine = true")
        page.get_by_role("region", name="Manage").get_by_role("link", name="Configure").focus()
    stands(page, "Ready")
    expect(page.locator("#announcer")).to_have_text("Tasks: Ready")
    expect(problem(page)).to_have_count(0)
    facets = page.get_by_role("region", name="Facets")
    expect(facets).to_contain_text("Drafts awaiting review", timeout=SOON)
    expect(facets.get_by_text("3", exact=True)).to_be_visible(timeout=SOON)
    expect(page.get_by_role("link", name="Configure")).to_be_focused()
    expect(page.get_by_role("button", name="Check now")).to_be_visible()
    expect(page.locator("#connector")).not_to_have_attribute("data-pending", "", timeout=SOON)
    assert page.evaluate("document.mine")


def test_a_server_that_goes_and_comes_back_is_told_on_its_open_page(place: Place):
    server = place.tasks(drafts=3)
    page = place.open(path="connectors/tasks/")
    facets = page.get_by_role("region", name="Facets")
    # Ready comes before its facets are listed; then there would be nothing to say of their counts.
    expect(facets).to_contain_text("Drafts awaiting review", timeout=SOON)
    server.refuse(None)
    press(page, "Check now")
    says(page, "Tasks is being checked.")
    stands(page, "Failed")
    expect(problem(page).get_by_role("button")).to_have_text(["Try again"])
    expect(problem(page).get_by_role("link")).to_have_text(["Configure", "Diagnose"])
    expect(facets).to_contain_text("Not counted while")
    server.refuse(200)
    press(page, "Try again")
    says(page, "Tasks is reconnecting.")
    stands(page, "Ready")
    expect(problem(page)).to_have_count(0)


def keep_changing(page: Page) -> list[str]:
    """Make every answer another state of the same page, and one more on its way; their paths."""
    asked: list[str] = []
    first: list[APIResponse] = []

    def answer(route: Route) -> None:
        asked.append(route.request.url)
        first.extend([] if first else [route.fetch()])
        start = f'id="connector" data-pending data-state="{len(asked)} '
        body = first[0].text().replace('id="connector" data-state="', start)
        route.fulfill(response=first[0], body=body)

    page.route("**/connectors/tasks/", answer)
    return asked


def test_what_is_opened_and_what_has_the_focus_stays_so_while_the_page_changes(place: Place):
    server = place.tasks()
    server.refuse(401)
    place.stack.manage("connector", "check", place.slug, "tasks")
    page = place.open()
    asked = keep_changing(page)
    page.goto(place.url("connectors/tasks/"))
    page.get_by_text("Technical details").click()
    parts = [
        page.get_by_text("Technical details"),
        page.get_by_role("button", name="Copy the technical details"),
        problem(page).get_by_role("link", name="Configure"),
        page.get_by_role("region", name="Manage").get_by_role("link", name="Configure"),
        page.get_by_role("button", name="Disconnect"),
        page.get_by_role("link", name="Remove Tasks"),
    ]
    for part in parts:
        part.focus()
        seen = page.locator("#connector").get_attribute("data-state") or ""
        expect(page.locator("#connector")).not_to_have_attribute("data-state", seen)
        expect(part).to_be_focused()
        expect(page.locator("#problem-detail")).to_be_visible()
    assert len(asked) > len(parts)


def test_a_page_asks_for_half_a_minute_at_most_and_not_once_nothing_is_on_its_way(place: Place):
    place.tasks()
    page = place.open()
    time = stopped_clock(page)
    asked = keep_changing(page)
    page.goto(place.url("connectors/tasks/"))
    for n in range(2, 32):
        with page.expect_response("**/connectors/tasks/"):
            time.run_for(1_000)
        expect(page.locator("#connector")).to_have_attribute("data-state", re.compile(f"^{n} "))
    time.run_for(60_000)
    assert len(asked) == 31
    page.unroute("**/connectors/tasks/")
    page.goto(place.url("connectors/tasks/"))
    asked.clear()
    page.on("request", lambda each: asked.append(each.url) if each.url == page.url else None)
    time.run_for(60_000)
    assert asked == []


def test_a_diagnosis_is_made_read_and_copied_by_keyboard_and_tells_no_secret(place: Place):
    server = place.serve(drafts=3)
    added(place, server, "--bearer", SECRET, "--connect")
    server.refuse(401)
    page = place.open(path="connectors/tasks/", bypass_csp=True)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("region", name="Manage").get_by_role("link", name="Diagnose").press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Diagnosis of Tasks")
    page.get_by_role("button", name="Diagnose").press("Enter")
    summary = page.locator("#steps")
    expect(summary).to_be_focused(timeout=DIAGNOSIS_MS)
    expect(page).to_have_title(re.compile(f"^{re.escape(summary.inner_text())} Diagnosis of Tasks"))
    steps = page.get_by_role("region", name=summary.inner_text()).locator("ol > li")
    expect(steps.filter(has_text="failed").first).to_contain_text("401")
    text = page.get_by_label("The diagnosis as text")
    page.get_by_role("button", name="Copy").press("Enter")
    expect(page.locator("#announcer")).to_have_text("Copied.")
    assert page.evaluate("navigator.clipboard.readText()") == text.input_value()
    assert SECRET not in page.content() + text.input_value()
    assert any(
        request.headers.get("authorization") == f"Bearer {SECRET}"
        for request in server.raw.requests
    )
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        found = Axe().run(page, options=OPTIONS).response["violations"]
        assert [each["id"] for each in found] == []


def test_without_script_a_diagnosis_is_there_to_be_selected(place: Place):
    server = place.tasks(drafts=3)
    page = place.open(path="connectors/tasks/diagnosis/", java_script_enabled=False)
    page.get_by_role("button", name="Diagnose").dblclick()
    expect(page.get_by_label("The diagnosis as text")).to_have_value(
        re.compile("^Diagnosis of Tasks"), timeout=DIAGNOSIS_MS
    )
    expect(page.get_by_role("button", name="Copy")).to_have_count(0)
    assert server.raw.count("resources/read") > 0


def test_newer_calls_are_told_and_shown_on_demand_in_the_readers_time(place: Place):
    server = place.serve()
    tool = {"name": "ping", "inputSchema": {"type": "object"}}
    tool["annotations"] = {"readOnlyHint": True}
    server.raw.on("tools/list", {"tools": [tool]})
    server.raw.on("tools/call", {"content": []})
    place.connect("Tasks", server.url)
    caller = place.open(path="tools/call/?name=tasks__ping")

    def call() -> None:
        caller.get_by_role("button", name="Call").click()
        expect(caller.get_by_role("heading", name="Result")).to_be_visible()

    call()
    page = place.open(timezone_id="Asia/Kolkata")
    time = stopped_clock(page)
    page.goto(place.url("traces/"))
    calls = page.locator("tbody tr")
    expect(calls).to_have_count(1)
    expect(page.get_by_role("columnheader", name="Time (Asia/Calcutta)")).to_be_visible()
    call()
    time.run_for(15_000)
    expect(calls).to_have_count(1)
    page.get_by_role("link", name="1 newer call – show").click()
    expect(calls).to_have_count(2)
