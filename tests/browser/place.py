"""What a test of the real stack starts from: a workspace of its own, people, servers, browsers."""

from __future__ import annotations

import itertools
import json
from contextlib import ExitStack
from typing import Any

from playwright.sync_api import Browser, Page, expect

from tests.browser.counted import Counted, counted_server
from tests.browser.site import errors_of
from tests.browser.stack import Stack

SEEN = {
    "blocked": ("critical", "Tasks blocked"),
    "drafts": ("warning", "Drafts awaiting review"),
    "replies": ("info", "Replies received"),
}
# A person waits no longer for anything, on a machine as busy as that of the tests.
ACT_MS = 20_000
_numbers = itertools.count(1)


class Place:
    """A workspace with Alice as its admin. Everything that it opened is closed with it."""

    def __init__(self, stack: Stack, browser: Browser, held: ExitStack) -> None:
        self.stack = stack
        self.browser = browser
        self.complaints: list[str] = []
        self._held = held
        self._domain = f"place-{next(_numbers)}.example"
        self.slug = self.add_workspace("acme", "Acme")

    def person(self, name: str) -> str:
        """The address of a person of this test."""
        return f"{name}@{self._domain}"

    def add_workspace(self, name: str, title: str) -> str:
        """One more workspace with Alice as its admin; its slug."""
        slug = f"{name}-{self._domain.partition('.')[0]}"
        words = ("create", slug, "--name", title, "--admin", self.person("alice"))
        self.stack.manage("workspace", *words)
        return slug

    def add_member(self, name: str, role: str = "member") -> None:
        self.stack.manage("member", "add", self.slug, self.person(name), "--role", role)

    def serve(self, facets: dict[str, tuple[str, str]] = SEEN, **counts: int) -> Counted:
        """Start a server, which no connector leads to yet."""
        server = self._held.enter_context(counted_server(facets))
        server.count(**counts)
        return server

    def connect(self, name: str, url: str, *words: str, slug: str = "") -> dict[str, Any]:
        """Add a connector with an app, and connect it; its report."""
        route = name.lower()
        placement = {"slot": "sidebar.apps", "route": route, "label": name}
        words = (url, "--name", name, "--placement", json.dumps(placement), "--connect", *words)
        return self.stack.manage("connector", "add", slug or self.slug, route, *words)

    def tasks(self, **counts: int) -> Counted:
        """A connected server, "Tasks", that counts what `SEEN` names."""
        server = self.serve(SEEN, **counts)
        assert self.connect("Tasks", server.url)["status"] == "ready"
        return server

    def connectors(self) -> dict[str, str]:
        """The status of each connector, by slug."""
        found = self.stack.manage("connector", "list", self.slug)["connectors"]
        return {each["slug"]: each["status"] for each in found}

    def url(self, path: str = "", slug: str = "") -> str:
        """The address of a path of the workspace."""
        return f"{self.stack.url}/w/{slug or self.slug}/{path}"

    def open(self, name: str = "alice", path: str = "", **options: Any) -> Page:
        """A browser of this person's own, at a page of the workspace."""
        context = self.browser.new_context(**options)
        context.set_default_timeout(ACT_MS)
        self._held.callback(context.close)
        page = self.watch(context.new_page())
        self.enter(page, name)
        page.goto(self.url(path))
        return page

    def enter(self, page: Page, name: str) -> None:
        """Sign in by link."""
        page.goto(self.stack.url + self.stack.sign_in_path(self.person(name)))

    def watch(self, page: Page) -> Page:
        """Count whatever the page complains of as an error of this test."""
        errors_of(page, self.complaints)
        return page


def live(page: Page) -> Page:
    """Wait until the page follows the server, with the pointer away from its list."""
    page.mouse.move(5, 5)
    expect(page.locator("#live")).to_have_text("Live")
    return page
