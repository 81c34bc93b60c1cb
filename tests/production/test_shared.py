"""What belongs to one connector is one for all processes: its sign-in, and its budget of reads."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from subprocess import CalledProcessError

import pytest

from tests.production.agent import was_done
from tests.production.conftest import BUDGET
from tests.production.test_many_processes import until
from tests.servers.authorization import authorization_server, sent_back
from tests.servers.raw import raw_server

DECLARATION = "ai.nimblebrain/resource-arguments"
RENEWED_SECONDS = 60
"""For three tokens of four seconds each, on a machine that is busy."""


@pytest.fixture
def signed_in(site):
    """An authorization server whose tokens live for four seconds, which Alice has agreed with."""
    with authorization_server(access_seconds=4) as server:
        with contextlib.suppress(CalledProcessError):  # It connects when she has signed in.
            site.connect_server("signed", server.url)
        page = "/w/acme/connectors/signed/"
        until(lambda: "sign-in/" in site.get(page))
        departure = site.press(f"{page}sign-in/", page)["Refresh"]
        site.get(sent_back(departure.removeprefix("0; url=")))
        yield server
        site.stack.manage("connector", "remove", "acme", "signed", "--yes")


@pytest.mark.requirement("D10")
def test_each_token_that_runs_out_is_renewed_once_by_all_processes(site, agent, signed_in):
    page = "/w/acme/connectors/signed/"
    urls = [web.url for web in site.stack.webs]
    until(lambda: all(was_done(agent.call(url, "signed__send_draft", {})) for url in urls))
    began, deadline = len(renewals(signed_in)), time.monotonic() + RENEWED_SECONDS

    def call_until_renewed(url):
        said = []
        while len(renewals(signed_in)) < began + 3 and time.monotonic() < deadline:
            said.append(was_done(agent.call(url, "signed__send_draft", {})))
        return said

    with ThreadPoolExecutor() as callers:
        calling = [callers.submit(call_until_renewed, url) for url in urls * 3]
        while not all(each.done() for each in calling):
            site.press(f"{page}check/", page)  # A worker needs the token too.
    assert all(all(each.result()) for each in calling)
    spent = [each.form["refresh_token"] for each in renewals(signed_in)]
    assert len(spent) == len(set(spent)) >= 3


def renewals(server):
    return server.asked("/token", grant_type="refresh_token")


@pytest.mark.requirement("R-118", "R-122")
def test_both_web_processes_draw_on_one_budget(site, agent):
    urls = [web.url for web in site.stack.webs]
    with raw_server() as crm, raw_server(capabilities={"tools": {}}) as mail:
        templates = [{"uriTemplate": "crm://signals/{id}", "name": "signal"}]
        crm.on("resources/templates/list", {"resourceTemplates": templates})
        crm.on("resources/read", _signal)
        mail.on("tools/list", {"tools": [_declared("send", "crm")]})
        mail.on("tools/call", {"content": []})
        for slug, server in {"crm": crm, "mail": mail}.items():
            site.connect_server(slug, server.url)

        def cite(url, *numbers):
            uris = [f"crm://signals/{number}" for number in numbers]
            return was_done(agent.call(url, "mail__send", {"to": uris}))

        until(lambda: cite(urls[0], 0) and crm.count("resources/read") == 1)
        with ThreadPoolExecutor() as callers:
            calls = islice(cycle(urls), 8)
            assert all(callers.map(lambda url: cite(url, 1, 2, 3, 4, 5), calls))
        codes = Counter(_codes(mail))
    assert crm.count("resources/read") == BUDGET
    assert codes["read"] == BUDGET
    assert codes["rate_limited"] == 1 + 8 * 5 - BUDGET


def _signal(request):
    return {"contents": [{"uri": request.params["uri"], "text": "warm"}]}


def _declared(name, scheme):
    declaration = {"arguments": {"to": {"schemes": [scheme]}}}
    schema = {"type": "object"}
    return {"name": name, "inputSchema": schema, "_meta": {DECLARATION: declaration}}


def _codes(server):
    """What came of each URI that a server's tool was called with, once it had an owner."""
    for request in server.seen("tools/call"):
        for entry in request.params["_meta"][DECLARATION].values():
            code = entry.get("error", {}).get("code", "read")
            if code != "not_found":
                yield code
