"""The running set of processes, with a browser signed in as Alice, an admin of Acme."""

from __future__ import annotations

import json
import re
import urllib.request
from http.cookiejar import CookieJar
from urllib.parse import urlencode

from websockets.sync.client import connect
from websockets.typing import Origin

SESSION_COOKIE = "overview_session"
TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="(\w+)"')


class Site:
    def __init__(self, stack):
        self.stack = stack
        self.cookies = CookieJar()
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.cookies))
        stack.manage(
            "workspace", "create", "acme", "--name", "Acme", "--admin", "alice@example.com"
        )
        link = json.loads(stack.manage("sign-in-link", "alice@example.com", "--json"))
        self.get(link["path"])

    def connect_server(self, slug, url):
        self.stack.manage("connector", "add", "acme", slug, url, "--name", slug, "--connect")

    def get(self, path, url=None):
        """A page, by the first web process or by the one at an address."""
        with self.opener.open((url or self.stack.webs[0].url) + path, timeout=10) as answer:
            return answer.read().decode()

    def press(self, path, page):
        """Press the button of a page that posts to a path; the headers of the answer."""
        token = TOKEN.search(self.get(page))[1]
        body = urlencode({"csrfmiddlewaretoken": token}).encode()
        with self.opener.open(self.stack.webs[0].url + path, body, timeout=40) as answer:
            return answer.headers

    def rows(self, url):
        """The overview's rows, by the web process or the front at an address."""
        return json.loads(self.get("/w/acme/attention.json", url))["rows"]

    def status(self, slug):
        """A connector's status."""
        listed = json.loads(self.stack.manage("connector", "list", "acme", "--json"))
        return next(each["status"] for each in listed["connectors"] if each["slug"] == slug)

    def page(self, port):
        """The websocket of an open page at the web process or the front of a port."""
        session = next(each.value for each in self.cookies if each.name == SESSION_COOKIE)
        return connect(
            f"ws://127.0.0.1:{port}/ws/w/acme/",
            origin=Origin(f"http://127.0.0.1:{port}"),
            additional_headers={"Cookie": f"{SESSION_COOKIE}={session}"},
            proxy=None,
        )
