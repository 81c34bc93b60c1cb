"""A workspace with something on every page, and the addresses of all pages, taken from the site's
own list of addresses: a page that is added is tested without being named here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from django.urls import URLPattern, URLResolver, get_resolver, reverse
from playwright.sync_api import Page, expect

from tests.browser.counted import MARKER
from tests.browser.place import Place, live

# Addresses that show no page of their own: acts, fragments, data, and places that lead on.
NO_PAGES = {
    "home",
    "overview:panel",
    "overview:attention",
    "connectors:connect",
    "connectors:reconnect",
    "connectors:disconnect",
    "connectors:cancel",
    "connectors:check",
    "connectors:sign_in",
    "connectors:newer",
    "connectors:personal_connect",
    "connectors:personal_reconnect",
    "connectors:personal_disconnect",
    "connectors:personal_cancel",
    "connectors:personal_check",
    "connectors:personal_sign_in",
    "connectors:oauth_client",
    "workspaces:sign_out",
}
# Pages that come with another status, because they say that something is over.
OVER = {"connectors:oauth_callback": 400, "workspaces:sign_in_link": 410}

SIGN_IN = "workspaces:sign_in"
# What the page says that it takes at most.
DIAGNOSIS_MS = 30_000
# Forms that refuse to be sent empty, and the buttons that send them.
EMPTY_FORMS = {
    "connectors:add": "Add and connect",
    "connectors:personal_add": "Add and connect",
    "connectors:remove": "Remove CRM",
    "workspaces:members": "Add member",
    "workspaces:tokens": "Create token",
}

FACETS = {
    "blocked": ("critical", "Tasks blocked"),
    "drafts": ("warning", "Drafts awaiting review from people whose names are long " * 4),
    "broken": ("warning", "Invoices to approve"),
    "replies": ("info", "\u05ea\u05e9\u05d5\u05d1\u05d5\u05ea"),
}
TOOLS = [
    {
        "name": "find_contact",
        "title": "Find a contact",
        "description": "Looks a contact up by the resource that describes it.",
        "inputSchema": {
            "type": "object",
            "properties": {"contact": {"type": "string"}, "limit": {"type": "integer"}},
        },
        "annotations": {"readOnlyHint": True},
        "_meta": {MARKER: {"arguments": {"contact": {"schemes": ["crm"]}}}},
    },
    {"name": "delete_contact", "inputSchema": {"type": "object", "properties": {}}},
]
NEEDY = {
    "name": "example/needy",
    "title": "Needy",
    "version": "1.0.0",
    "description": "Wants a key",
    "remotes": [
        {
            "type": "streamable-http",
            "url": "https://needy.example/mcp",
            "headers": [{"name": "X-Key", "isRequired": True, "isSecret": True}],
        }
    ],
}


@dataclass
class House:
    """See the module. known: what stands in addresses, by the name that the site gives it."""

    place: Place
    known: dict[str, Any] = field(default_factory=dict)
    names: dict[str, list[str]] = field(default_factory=dict)

    def paths(self) -> dict[str, str]:
        """The path of each page by what it is called here."""
        named = {
            name: reverse(name, kwargs={each: self.known[each] for each in parameters})
            for name, parameters in sorted(self.names.items())
            if name not in NO_PAGES
        }
        named["connectors:tool"] += f"?name={self.known['tool']}"
        within = f"/w/{self.place.slug}"
        # The last one, because whoever is signed in is led on from there.
        sign_in = named.pop(SIGN_IN)
        return named | {
            "a failed connector": f"{within}/connectors/mail/",
            "a connector at rest": f"{within}/connectors/archive/",
            "a connector without its key": f"{within}/connectors/needy/",
            "its form": f"{within}/connectors/needy/configure/",
            "an answer about a URI": f"{within}/overlaps/?uri=crm://contacts/42",
            "traces that do not match": f"{within}/traces/?tool=none",
            "connectors that do not match": f"{within}/connectors/?q=none",
            "no such page": f"{within}/none/",
            SIGN_IN: sign_in,
        }

    def visit(self, page: Page, *, answers: bool = True) -> Iterator[tuple[str, str]]:
        """Open one page after the other, those that forms answer with too; its name and path."""
        for name, path in self.paths().items():
            if name == SIGN_IN:
                if answers:
                    yield from self._answers(page)
                page.context.clear_cookies()
            page.goto(self.place.stack.url + path, wait_until="domcontentloaded")
            yield name, path

    def _answers(self, page: Page) -> Iterator[tuple[str, str]]:
        """What forms answer with a page: what is wrong, what is asked once more, what is made."""
        paths = self.paths()
        for name, button in EMPTY_FORMS.items():
            page.goto(self.place.stack.url + paths[name])
            page.get_by_role("button", name=button).first.click()
            expect(page.locator(".errors")).to_be_focused()
            yield f"{name}, refused", paths[name]
        path = paths["connectors:tool"].replace("find_contact", "delete_contact")
        page.goto(self.place.stack.url + path)
        page.get_by_role("button", name="Call").click()
        expect(page.get_by_role("heading", name="What is sent")).to_be_visible()
        yield "a call to confirm", path
        page.goto(self.place.stack.url + paths["connectors:diagnosis"])
        page.get_by_role("button", name="Diagnose").click()
        expect(page.locator("#steps")).to_be_focused(timeout=DIAGNOSIS_MS)
        yield "a diagnosis", paths["connectors:diagnosis"]
        page.goto(self.place.stack.url + paths["workspaces:tokens"])
        page.get_by_label("Name").fill(uuid4().hex)
        page.get_by_role("button", name="Create token").click()
        expect(page.get_by_label("Token", exact=True)).to_be_visible()
        yield "a token that is made", paths["workspaces:tokens"]

    def open(self, **options: Any) -> Page:
        """A browser of the person who may see every page."""
        return self.place.open("olga", "settings/", **options)


def site_names() -> dict[str, list[str]]:
    """Every name in the site's addresses, Django's own administration apart, and what stands in
    such an address."""
    return {
        name: parameters
        for name, parameters in _names(get_resolver().url_patterns, "", [])
        if not name.startswith("admin:")
    }


def _names(patterns: Any, prefix: str, before: list[str]) -> Iterator[tuple[str, list[str]]]:
    for each in patterns:
        parameters = [*before, *each.pattern.converters]
        if isinstance(each, URLResolver):
            inside = f"{prefix}{each.namespace}:" if each.namespace else prefix
            yield from _names(each.url_patterns, inside, parameters)
        elif isinstance(each, URLPattern) and each.name:
            yield prefix + each.name, parameters


def furnish(place: Place, folder: Path) -> House:
    """Fill a workspace, through commands and pages."""
    olga = place.person("olga")
    place.stack.run("createsuperuser", "--noinput", "--email", olga)
    place.add_member("olga", "admin")
    place.add_member("bob")
    _connect(place, olga, folder)
    token = place.stack.manage("token", "create", place.slug, olga, "--name", "Laptop")
    page = live(place.open("olga"))
    expect(page.locator("li[data-unavailable]")).to_have_count(1, timeout=20_000)
    page.goto(place.url("members/"))
    bob = page.get_by_role("link", name="Change bob").get_attribute("href") or ""
    trace, tool = _call(page, place)
    page.context.close()
    known = {
        "slug": place.slug,
        "connector": "crm",
        "route": "crm",
        "uid": "MQ",
        "token": "a-b",
        "user_id": re.findall(r"\d+", bob)[-1],
        "token_id": token["id"],
        "trace": trace,
        "tool": tool,
    }
    return House(place, known, site_names())


def _connect(place: Place, olga: str, folder: Path) -> None:
    server, legacy = place.serve(FACETS, blocked=2, drafts=34, replies=12), place.serve({})
    server.count(broken=None)
    server.raw.on("tools/list", {"tools": TOOLS})
    server.raw.on("tools/call", {"content": [{"type": "text", "text": "Ada Lovelace"}]})
    for each in (server, legacy):
        template = {"uriTemplate": "crm://contacts/{id}", "name": "contact"}
        each.raw.on("resources/templates/list", {"resourceTemplates": [template]})
    place.connect("CRM", server.url)
    place.connect("Legacy", legacy.url)
    place.connect("Mail", "http://127.0.0.1:9/mcp", "--bearer", "secret")
    add = ("connector", "add", place.slug)
    place.stack.manage(*add, "archive", server.url, "--name", "Archive")
    described = folder / "server.json"
    described.write_text(json.dumps(NEEDY))
    place.stack.manage(*add, "needy", "--server-json", str(described), "--connect")
    # Of the same slug, so that one word leads to both.
    place.connect("CRM", server.url, "--personal", olga)


def _call(page: Page, place: Place) -> tuple[str, str]:
    """Call a tool; the trace's id and the tool's name."""
    page.goto(place.url("tools/"))
    page.get_by_role("link", name="find_contact").first.click()
    tool = page.get_by_role("heading", level=1).inner_text()
    page.get_by_label("contact").fill("crm://contacts/42")
    page.get_by_role("button", name=f"Call {tool}").click()
    link = page.get_by_role("link", name=re.compile("own page$"))
    return (link.get_attribute("href") or "").rstrip("/").rpartition("/")[2], tool
