"""What Chromium makes of the Content-Security-Policy that the site really sends."""

from __future__ import annotations

import pytest
from django.test import Client
from playwright.sync_api import Page

from tests.browser.site import errors_of

pytestmark = pytest.mark.browser

PLACE = "http://policy.test/"
HARM = {
    "an inline script": "<script>document.title = 'harmed'</script>",
    "an attribute": "<svg onload=\"document.title = 'harmed'\"></svg>",
    "another site's script": '<script src="http://evil.test/x.js"></script>',
    "a style": "<style>body { display: none }</style>",
    "another site's picture": '<img src="http://evil.test/x.png" alt="">',
    "a frame": '<iframe src="http://evil.test/"></iframe>',
    "a base": '<base href="http://evil.test/">',
    "an object": '<object data="http://evil.test/x"></object>',
}


@pytest.mark.parametrize("harm", HARM.values(), ids=HARM)
def test_what_gets_into_a_page_does_nothing_and_is_noticed_by_these_tests(
    page: Page, harm: str, db: None
) -> None:
    """The browser tests fail on whatever a page complains of: so they do on a violation."""
    policy = Client().get("/sign-in/")["Content-Security-Policy"]
    asked: list[str] = []

    def answer(route):
        if route.request.url != PLACE:
            asked.append(route.request.url)
            return route.abort()
        html = f"<!doctype html><title>whole</title><body>whole{harm}</body>"
        headers = {"Content-Security-Policy": policy}
        return route.fulfill(body=html, content_type="text/html", headers=headers)

    page.route("**/*", answer)
    complaints = errors_of(page)
    page.goto(PLACE)
    assert page.title() == "whole"
    assert page.get_by_text("whole").is_visible()
    assert [url for url in asked if "evil" in url] == []
    assert any("Content Security Policy" in each for each in complaints)


def test_a_form_leads_to_no_other_site(page: Page, db: None) -> None:
    policy = Client().get("/sign-in/")["Content-Security-Policy"]
    asked: list[str] = []

    def answer(route):
        asked.append(route.request.url)
        html = '<!doctype html><title>whole</title><form action="http://evil.test/"></form>'
        headers = {"Content-Security-Policy": policy}
        return route.fulfill(body=html, content_type="text/html", headers=headers)

    page.route("**/*", answer)
    page.goto(PLACE)
    with page.expect_console_message(lambda said: "form-action" in said.text, timeout=20_000):
        page.evaluate("document.forms[0].submit()")
    assert [url for url in asked if "evil" in url] == []
