"""The whole set of processes on real services, with a workspace and people, once for all tests."""

from __future__ import annotations

import json
import urllib.request
from http.cookiejar import CookieJar

import pytest
from websockets.sync.client import connect
from websockets.typing import Origin

from tests.services import services
from tests.stack import Stack

FRESH_SECONDS = 3
READ_SECONDS = 1
SESSION_COOKIE = "overview_session"


class Site:
    """The running set, with a browser signed in as Alice."""

    def __init__(self, stack):
        self.stack = stack
        self.cookies = CookieJar()
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.cookies))
        stack.manage(
            "workspace", "create", "acme", "--name", "Acme", "--admin", "alice@example.com"
        )
        link = json.loads(stack.manage("sign_in_link", "alice@example.com", "--json"))
        self.opener.open(stack.webs[0].url + link["path"], timeout=10).close()

    def connect_server(self, slug, url):
        self.stack.manage("connector", "add", "acme", slug, url, "--name", slug, "--connect")

    def rows(self, web=0):
        url = f"{self.stack.webs[web].url}/w/acme/attention.json"
        with self.opener.open(url, timeout=10) as answer:
            return json.load(answer)["rows"]

    def page(self, web=0):
        """The websocket of an open page at one of the web processes."""
        port = self.stack.webs[web].port
        session = next(each.value for each in self.cookies if each.name == SESSION_COOKIE)
        return connect(
            f"ws://127.0.0.1:{port}/ws/w/acme/",
            origin=Origin(f"http://127.0.0.1:{port}"),
            additional_headers={"Cookie": f"{SESSION_COOKIE}={session}"},
            proxy=None,
        )


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    with (
        services() as variables,
        Stack(
            tmp_path_factory.mktemp("stack"),
            variables,
            # Two clocks: what both queue must happen once.
            beats=2,
            FACET_FRESH_SECONDS=str(FRESH_SECONDS),
            FACET_READ_TIMEOUT_SECONDS=str(READ_SECONDS),
            METRICS_TOKEN="scrape-me",
        ) as stack,
    ):
        yield Site(stack)
