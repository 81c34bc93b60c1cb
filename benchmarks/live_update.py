"""What one live change costs the browser's main thread on a page of 250 rows.

    .venv/bin/python -m benchmarks.live_update

Chromium's own account of script, style and layout, from before the push until the change shows.
"""

from __future__ import annotations

import os
import statistics

from benchmarks.database import temporary_database
from benchmarks.report import head, row

ROWS = 250
ROUNDS = 15
PARTS = ("ScriptDuration", "LayoutDuration", "RecalcStyleDuration")


def main() -> None:
    # Playwright's sync API runs an event loop in this thread.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with temporary_database():
        costs = _measure()
    median, most = statistics.median(costs), max(costs)
    head(f"a live change on {ROWS} rows")
    words = f"{median:.1f} ms (worst {most:.1f} ms)"
    row("main-thread work", words, "50 ms", is_met=median <= 50)


def _measure() -> list[float]:
    from django.conf import settings
    from django.test import override_settings
    from playwright.sync_api import expect, sync_playwright

    from tests.browser.chromium import ARGUMENTS, CHROMIUM
    from tests.browser.site import Site, facet

    rows = [facet(f"Things of kind {number}", number + 1) for number in range(ROWS)]
    plain = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    }
    costs = []
    with override_settings(STORAGES=plain), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        context = browser.new_context()
        page = context.new_page()
        site = Site(context)
        site.open(page, *rows)
        expect(page.locator("#live")).to_have_text("Live")
        accounts = context.new_cdp_session(page)
        accounts.send("Performance.enable")
        for number in range(ROUNDS):
            changed = [facet(f"News {number}", 7, "critical"), *rows[: ROWS - 1]]
            before = _spent(accounts)
            site.push(*changed)
            expect(page.locator("#attention-list > li").first).to_contain_text(f"News {number}")
            costs.append((_spent(accounts) - before) * 1000)
        browser.close()
    return costs


def _spent(accounts) -> float:
    metrics = accounts.send("Performance.getMetrics")["metrics"]
    return sum(each["value"] for each in metrics if each["name"] in PARTS)


if __name__ == "__main__":
    main()
