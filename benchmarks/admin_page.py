"""The overview with 50 connectors beside ContextForge's admin page with 50 gateways.

    .venv/bin/python -m benchmarks.admin_page

Both in one run, one process each on SQLite, the same server behind all connectors and gateways, in
Chromium with an empty cache for each visit. ContextForge serves its own scripts here instead of
fetching them from elsewhere. The server's time is of the document alone, without a browser.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks.contextforge import contextforge
from benchmarks.database import temporary_database
from benchmarks.overview_page import connected
from benchmarks.tool_calls import line_of, started
from benchmarks.venvs import LeftOut, free_port, running

NUMBER, VISITS, ASKED, FIRST = 50, 5, 10, 2
QUIET_MS, VISIT_MS = 1000, 60_000
ACCEPTED = {"Accept": "text/html", "Accept-Encoding": "gzip"}
PAINTS = """() => Object.fromEntries(
    performance.getEntriesByType("paint").map(({name, startTime}) => [name, startTime]))"""


@dataclass(frozen=True, slots=True)
class Site:
    """One page to visit. shows: words that are there once the list of all 50 is."""

    name: str
    url: str
    headers: dict[str, str]
    shows: str


@dataclass(frozen=True, slots=True)
class Visit:
    """What the browser fetched and when it painted, in ms from the start of the visit."""

    requests: int
    transferred: int
    unpacked: int
    first_paint: float
    shown: float


@contextlib.contextmanager
def ours() -> Iterator[Site]:
    from benchmarks.filling import fill, signed_in

    fill("of-50", connectors=NUMBER, facets=5, above_zero=60)
    _, cookie = signed_in()
    port = free_port()
    words = ["-m", "uvicorn", "overview.asgi:application", "--port", port]
    with running([sys.executable, *words], Path.cwd(), port):
        url = f"http://127.0.0.1:{port}/w/of-50/"
        yield Site("our overview", url, {"Cookie": cookie}, f"Server {NUMBER - 1}")


@contextlib.contextmanager
def theirs(folder: Path) -> Iterator[Site]:
    names = ("UI_ENABLED", "ADMIN_API_ENABLED", "UI_AIRGAPPED")
    settings = {f"MCPGATEWAY_{name}": "true" for name in names}
    settings["PASSWORD_CHANGE_ENFORCEMENT_ENABLED"] = "false"  # Else it shows a form first.
    with started("--peer") as peer, contextforge(folder, **settings) as gateway:
        port = line_of(peer)
        for number in range(NUMBER):
            gateway.add(f"server-{number:02}", f"http://127.0.0.1:{port}/{number}/mcp")
        token = {"Cookie": f"jwt_token={gateway.token}"}
        name = f"ContextForge {gateway.version}, its admin page"
        yield Site(name, f"{gateway.base}/admin/#gateways", token, f"server-{NUMBER - 1:02}")


def server_ms(site: Site) -> float:
    """The median time of the document."""
    parts = urlsplit(site.url)
    peer = connected(parts.port or 0, VISIT_MS / 1000)
    taken = []
    for _ in range(ASKED + FIRST):
        begun = time.perf_counter()
        peer.request("GET", parts.path, headers=site.headers | ACCEPTED)
        answer = peer.getresponse()
        answer.read()
        assert answer.status == 200, f"{site.name}: {answer.status}"
        taken.append((time.perf_counter() - begun) * 1000)
    return statistics.median(taken[FIRST:])


def visit(browser: Any, site: Site) -> Visit:
    context = browser.new_context(extra_http_headers=site.headers)
    page = context.new_page()
    accounts = context.new_cdp_session(page)
    accounts.send("Network.enable")
    got = {"requests": 0, "transferred": 0, "unpacked": 0}

    def finished(event: dict[str, Any]) -> None:
        got["requests"] += 1
        got["transferred"] += int(event["encodedDataLength"])

    accounts.on("Network.loadingFinished", finished)
    accounts.on(
        "Network.dataReceived",
        lambda event: got.update(unpacked=got["unpacked"] + event["dataLength"]),
    )
    begun = time.perf_counter()
    page.goto(site.url, wait_until="commit", timeout=VISIT_MS)
    page.get_by_text(site.shows).first.wait_for(state="attached", timeout=VISIT_MS)
    shown = (time.perf_counter() - begun) * 1000
    page.wait_for_load_state("load", timeout=VISIT_MS)
    page.wait_for_timeout(QUIET_MS)
    paints = page.evaluate(PAINTS)
    context.close()
    return Visit(**got, first_paint=paints["first-contentful-paint"], shown=shown)


def line(site: Site, visits: list[Visit], document_ms: float) -> None:
    def median(name: str) -> float:
        return statistics.median(getattr(each, name) for each in visits)

    print(
        f"| {site.name} | {median('requests'):.0f} | {median('transferred') / 1024:.0f} KB "
        f"| {median('unpacked') / 1024:.0f} KB | {document_ms:.0f} ms "
        f"| {median('first_paint'):.0f} ms | {median('shown'):.0f} ms |"
    )


def main() -> None:
    # Playwright's sync API runs an event loop in this thread.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with contextlib.ExitStack() as ends:
        folder = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="admin-page-")))
        ends.enter_context(temporary_database())
        from playwright.sync_api import sync_playwright

        from tests.browser.chromium import ARGUMENTS, CHROMIUM

        sites, left_out = [ends.enter_context(ours())], ""
        try:
            sites.append(ends.enter_context(theirs(folder)))
        except LeftOut as reason:
            left_out = f"\nLeft out: ContextForge: {reason}"
        times = [server_ms(site) for site in sites]
        browser = ends.enter_context(sync_playwright()).chromium.launch(
            executable_path=CHROMIUM, args=ARGUMENTS
        )
        visits: list[list[Visit]] = [[] for _ in sites]
        for _ in range(VISITS):
            for site, found in zip(sites, visits, strict=True):
                found.append(visit(browser, site))
        browser.close()
    print(
        f"| {NUMBER} servers on one page | requests | transferred | unpacked "
        "| server's time | first paint | the last of the list is there |"
    )
    print("|---|---|---|---|---|---|---|")
    for site, found, document_ms in zip(sites, visits, times, strict=True):
        line(site, found, document_ms)
    print(left_out)


if __name__ == "__main__":
    main()
