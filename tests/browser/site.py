"""The overview as a browser gets it, without a server: the real templates and static files,
answered inside Chromium under the real content security policy, with a socket that the test holds.

For what the page itself does. The whole stack is driven by the tests beside that use its server.
"""

from __future__ import annotations

import hashlib
import json
import mimetypes
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.template.loader import render_to_string
from playwright.sync_api import BrowserContext, Locator, Page, Route, WebSocketRoute

from connectors.protocol.facets import Level
from connectors.status import Status, label_of, level_of
from overview.fragments import rendered
from overview.panel import Panel, Row, row_key

ORIGIN = "https://overview.test"
POLICY = "; ".join(
    f"{name} {' '.join(sources)}"
    for name, sources in settings.CONTENT_SECURITY_POLICY["DIRECTIVES"].items()
)


def facet(
    title: str,
    count: int | str | None,
    level: str = "warning",
    *,
    name: str = "",
    connector: int = 1,
    app: str = "Tasks",
    epoch: int = 1,
    href: str | None = "/w/acme/app/tasks",
    age_seconds: int = 10,
) -> Row:
    """A facet's row. count None: unavailable."""
    return Row(
        key=row_key(connector, name or title),
        connector_id=connector,
        epoch=epoch,
        level=Level(level),
        count=None if count is None else str(count),
        title=title,
        app=app,
        state="unavailable" if count is None else "ok",
        href=href,
        counted_at=datetime.now(UTC) - timedelta(seconds=age_seconds),
        is_old=count is not None and age_seconds > 120,
    )


def down(app: str, status: Status, *, connector: int = 9, epoch: int = 1) -> Row:
    """The row of a connector that is not ready."""
    level = level_of(status)
    assert level is not None
    href = f"/w/acme/connectors/{app.lower()}/"
    title = label_of(status)
    return Row(str(connector), connector, epoch, level, None, title, app, status.value, href)


@dataclass
class Site:
    """What the server would answer now, and what it was asked for."""

    context: BrowserContext
    slug: str = "acme"
    user: int = 7
    panel: Panel = field(default_factory=lambda: Panel((), checking=0, version=1))
    page_context: dict[str, Any] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)
    fragment_status: int = 200
    accepts_sockets: bool = True
    requests: list[str] = field(default_factory=list)
    sockets: list[WebSocketRoute] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.context.route(f"{ORIGIN}/**", self._answer)
        self.context.route_web_socket(f"{ORIGIN.replace('http', 'ws')}/**", self._socket)

    def show(self, *rows: Row, checking: int = 0) -> None:
        """Set the panel. An open page sees it when it asks, or when pushed."""
        self.panel = Panel(rows, checking, self.panel.version + 1)

    def push(self, *rows: Row, checking: int = 0) -> None:
        """Set the panel and tell the open pages that it changed."""
        self.show(*rows, checking=checking)
        for socket in self.sockets:
            socket.send(json.dumps({"type": "panel.changed", "version": self.panel.version}))

    def close_sockets(self, code: int) -> None:
        sockets, self.sockets = self.sockets, []
        for socket in sockets:
            socket.close(code=code)

    def open(self, page: Page, *rows: Row, checking: int = 0) -> None:
        """Open the overview with these rows."""
        self.show(*rows, checking=checking)
        page.goto(f"{ORIGIN}/w/{self.slug}/")

    @property
    def fragments(self) -> int:
        return sum(path.endswith("/panel/") for path in self.requests)

    def html(self, template: str, **context: Any) -> str:
        workspace: Any = SimpleNamespace(slug=self.slug, name=self.slug.capitalize())
        person = SimpleNamespace(pk=self.user, is_authenticated=True)
        below: dict[str, Any] = {"apps": [], "health": [], "connector_count": 0}
        below |= {name: self.page_context[name] for name in below if name in self.page_context}
        page: Any = SimpleNamespace(panel=self.panel, **below)
        return render_to_string(
            template,
            {
                "workspace": workspace,
                "user": person,
                "member": SimpleNamespace(user=person, role="admin", is_admin=True),
                "panel": self.panel,
                "shown": rendered(workspace, page),
                "nav_workspaces": [workspace],
                **self.page_context,
                **context,
            },
        )

    def _socket(self, socket: WebSocketRoute) -> None:
        if self.accepts_sockets:
            self.sockets.append(socket)
        else:
            socket.close(code=1013)

    def _answer(self, route: Route) -> None:
        path = urlsplit(route.request.url).path
        self.requests.append(path)
        if path.startswith("/static/"):
            kind = mimetypes.guess_type(path)[0]
            route.fulfill(path=settings.BASE_DIR / path[1:], content_type=kind)
        elif path.endswith("/panel/"):
            self._fulfil(route, self.html("overview/_panel.html"), self.fragment_status)
        elif path == f"/w/{self.slug}/":
            self._fulfil(route, self.html("overview/overview.html"), 200)
        else:
            blank = f"<!doctype html><title>{path}</title>"
            self._fulfil(route, self.answers.get(path, blank), 200)

    def _fulfil(self, route: Route, html: str, status: int) -> None:
        headers = {
            "Content-Security-Policy": POLICY,
            "ETag": f'"{hashlib.sha256(html.encode()).hexdigest()[:12]}"',
        }
        route.fulfill(status=status, body=html, content_type="text/html", headers=headers)


def errors_of(page: Page, found: list[str] | None = None) -> list[str]:
    """A list that fills with everything that the page complains about from now on."""
    found = [] if found is None else found
    complain: Callable[[Any], None] = lambda error: found.append(str(error))  # noqa: E731
    page.on("pageerror", complain)
    page.on("console", lambda m: found.append(m.text) if m.type in ("error", "warning") else None)
    return found


def box_of(locator: Locator) -> dict[str, float]:
    """Where it is on the page: x, y, width, height."""
    found = locator.bounding_box()
    assert found is not None
    return {"x": found["x"], "y": found["y"], "width": found["width"], "height": found["height"]}
