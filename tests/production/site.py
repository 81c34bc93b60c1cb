"""The running set of processes, with a browser signed in as Alice, an admin of Acme."""

from __future__ import annotations

import json
import urllib.request
from http.cookiejar import CookieJar

from websockets.sync.client import connect
from websockets.typing import Origin

SESSION_COOKIE = "overview_session"


class Site:
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

    def rows(self, url):
        """The overview's rows, by the web process or the front at an address."""
        with self.opener.open(f"{url}/w/acme/attention.json", timeout=10) as answer:
            return json.load(answer)["rows"]

    def page(self, port):
        """The websocket of an open page at the web process or the front of a port."""
        session = next(each.value for each in self.cookies if each.name == SESSION_COOKIE)
        return connect(
            f"ws://127.0.0.1:{port}/ws/w/acme/",
            origin=Origin(f"http://127.0.0.1:{port}"),
            additional_headers={"Cookie": f"{SESSION_COOKIE}={session}"},
            proxy=None,
        )
