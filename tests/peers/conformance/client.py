"""The client that the suite drives: a connector of the host's, as people and the worker use it.

    python -m tests.peers.conformance.client URL      with MCP_CONFORMANCE_CONTEXT

The connector is added and checked; when its server wants a sign-in, somebody signs in. Then its
tools are listed and called, over the host's own sessions. What happened goes to standard error.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import httpx2

from tests.peers.conformance.place import settle, workspace

MAX_SIGN_INS = 2
SECONDS = 10
CLIENT_DOCUMENT = "https://conformance-test.local/client-metadata.json"
"""The suite's name for the client, to which it compares ours."""


def main() -> None:
    database = Path(os.environ["CONFORMANCE_DATABASE"])
    with turn(database.parent), tempfile.TemporaryDirectory() as name:
        settle(Path(name), database)
        from connectors.runtime import close_runtime

        try:
            converse(sys.argv[-1], json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}"))
        finally:
            close_runtime()


@contextlib.contextmanager
def turn(folder):
    """Wait for one of as many places as there are processors: the suite starts all at once."""
    with contextlib.ExitStack() as stack:
        places = [
            stack.enter_context((folder / f"place-{number}").open("w"))
            for number in range(os.cpu_count() or 1)
        ]
        while not any(map(is_taken, places)):
            time.sleep(0.1)
        yield


def is_taken(place):
    try:
        fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def converse(url, context):
    from connectors.actions import add_connector, connect_connector
    from connectors.models import Connector

    acme, person = workspace()
    connector = Connector(workspace=acme, slug="server", name="Server", url=url)
    add_connector(connector, given_client(context), by=person)
    connect_connector(connector, by=person)
    host = Host(connector, person)
    host.ask(host.check)
    listed = host.ask(lambda: host.run(lambda s, to: s.list_entries(to, "tools/list", SECONDS)))
    tools = {each["name"]: each for each in getattr(listed, "entries", [])}
    calls = context.get("toolCalls") or [
        {"name": name, "arguments": arguments_for(tool, tools)} for name, tool in tools.items()
    ]
    for call in calls:
        host.ask(lambda call=call: host.call(call, tools.get(call["name"], {})))


def given_client(context):
    """What an admin enters under Configure, where a server knows no other clients."""
    from connectors.models import Secret

    if "issuer" not in context or "client_id" not in context:
        return []
    return [
        Secret(kind="client", name=f"{name}@{context['issuer']}", value=context[name])
        for name in ("client_id", "client_secret")
    ]


def arguments_for(tool, tools):
    """A value for each property. An object is what the suite wants back: a schema of its own."""
    first, *_ = tools.values()
    values = {"string": "words", "number": 1, "integer": 1, "object": first["inputSchema"]}
    properties = tool["inputSchema"].get("properties", {})
    return {
        name: values[schema.get("type")]
        for name, schema in properties.items()
        if schema.get("type") in values
    }


class Host:
    """One connector and the person who looks after it."""

    def __init__(self, connector, person):
        self.connector, self.person = connector, person

    def ask(self, question):
        """Ask, and once more after each sign-in that the answer calls for."""
        outcome = question()
        for _ in range(MAX_SIGN_INS):
            print(outcome, file=sys.stderr)
            if not calls_for_sign_in(outcome) or not self.sign_in():
                break
            self.check()
            outcome = question()
        return outcome

    def check(self):
        from django.utils import timezone

        from connectors.checks import look_at

        self.connector.refresh_from_db()
        return look_at(self.connector, timezone.now())

    def call(self, call, tool):
        hints = tool.get("annotations") or {}
        is_repeatable = bool(hints.get("readOnlyHint") or hints.get("idempotentHint"))
        return self.run(
            lambda sessions, to: sessions.call_tool(
                to,
                call["name"],
                call.get("arguments") or {},
                timeout=SECONDS,
                is_repeatable=is_repeatable,
            )
        )

    def run(self, work):
        """Give the outcome of some work with the sessions; None while it cannot be reached."""
        from django.utils import timezone

        from connectors.models import Connector
        from connectors.queries import targets_of
        from connectors.runtime import run

        mine = Connector.objects.filter(pk=self.connector.pk)
        target = targets_of(mine, timezone.now()).get(self.connector.pk)
        return target and run(lambda sessions: work(sessions, target), SECONDS + 5)

    def sign_in(self):
        """Sign in as a browser does that is sent there and back; whether it worked."""
        from django.utils import timezone

        from connectors.oauth import acts
        from connectors.oauth.flow import begin, finish
        from connectors.oauth.metadata import Problem
        from connectors.oauth.site import Site

        class Known(Site):
            document_url = CLIENT_DOCUMENT

        self.connector.refresh_from_db()
        departure = begin(self.connector, Known("http://localhost:3000"), by=self.person)
        if isinstance(departure, Problem):
            print(departure, file=sys.stderr)
            return False
        there = httpx2.get(departure.url, timeout=SECONDS, trust_env=False)
        back = dict(parse_qsl(urlsplit(there.headers.get("location", "")).query))
        pending = acts.take_pending(back.get("state", ""), self.person, timezone.now())
        problem = finish(pending, back) if pending else "The state is not known."
        print("Signed in:", problem or "yes", file=sys.stderr)
        return problem is None


def calls_for_sign_in(outcome):
    """Whether the server wants a credential, or one that may do more."""
    from connectors.sessions import Fault, FaultKind

    wants = (FaultKind.UNAUTHORIZED, FaultKind.FORBIDDEN)
    return isinstance(outcome, Fault) and outcome.kind in wants


if __name__ == "__main__":
    main()
