"""The walk to real servers, each broken at another step, and to one without fault."""

from __future__ import annotations

import time

import pytest

from connectors.diagnosis.record import Terms
from connectors.diagnosis.text import as_json, as_text
from connectors.diagnosis.values import Fixer, Outcome, Verdict
from connectors.diagnosis.walk import walk
from connectors.protocol.identifiers import RESOURCE_ARGUMENTS
from connectors.sessions import Fault, FaultKind, Limits
from tests.connectors.session_host import claims, loopback_only, target_of
from tests.overview.factories import entry
from tests.overview.served import FACETED, count, publish
from tests.servers.certificates import Authority
from tests.servers.raw import LEGACY, MODERN, Drop, Error, Reply, forever, raw_server
from workspaces.background import BackgroundLoop

MARKER = "planted-secret-7f3a"


@pytest.fixture(scope="module")
def loop():
    loop = BackgroundLoop("diagnosis")
    yield loop
    loop.close()


@pytest.fixture
def diagnosis_of(loop):
    """Walk to a server, or to an address, with short times."""

    def made(server, also=(), *, fields=None, **changes):
        terms = Terms(
            limits=Limits(connect_seconds=1.5, close_seconds=0.3),
            claims=claims,
            is_allowed=changes.pop("is_allowed", loopback_only),
            read_seconds=1,
            total_seconds=changes.pop("total_seconds", 12),
            **changes,
        )
        url = server if isinstance(server, str) else server.url
        return loop.run(walk("it", target_of(url, **(fields or {})), terms, also), 20)

    return made


@pytest.fixture
def server():
    with raw_server(capabilities={**FACETED, "tools": {}}) as server:
        publish(server, entry())
        server.on("resources/templates/list", {"resourceTemplates": [{"uriTemplate": "a://{b}"}]})
        meta = {RESOURCE_ARGUMENTS: {"arguments": {"cited": {"schemes": ["crm"]}}}}
        tool = {"name": "send", "inputSchema": {"properties": {"cited": {}}}, "_meta": meta}
        server.on("tools/list", {"tools": [tool]})
        yield server


def step(diagnosis, name):
    """The one step of that name, or whose name begins so."""
    (found,) = [each for each in diagnosis.steps if each.name.startswith(name)]
    return found


def last(diagnosis):
    return diagnosis.steps[-1]


def test_a_good_server_is_walked_to_the_end_and_nothing_is_found(diagnosis_of, server):
    made = diagnosis_of(server)
    assert made.verdict is Verdict.OK
    assert [each.name for each in made.steps] == [
        "Name (DNS)",
        "Address allowed",
        "Connection (TCP)",
        "First answer (HTTP)",
        "Protocol",
        "Credential",
        "Capabilities",
        "Resources",
        "Resource templates",
        "Tools",
        "Facet “Drafts awaiting review”",
    ]
    assert {each.outcome for each in made.steps} == {Outcome.OK}
    first = "A web server answers: HTTP 200, without a redirect."
    assert step(made, "First answer (HTTP)").words == first
    assert step(made, "Protocol").words == "raw 1.0 speaks 2026-07-28."
    assert step(made, "Tools").words == "1 entry on 1 page, 1 with resource arguments."
    assert last(made).words == "3, within the 1 s of a read."
    assert step(made, "Resources").seconds is not None


def test_an_address_that_is_none_ends_the_walk(diagnosis_of):
    made = diagnosis_of("ftp://example.com/mcp")
    assert (last(made).name, made.verdict) == ("Address", Verdict.UNREACHABLE)


def test_a_name_without_an_address_ends_the_walk(diagnosis_of):
    made = diagnosis_of("https://nowhere.invalid/mcp")
    assert (last(made).name, last(made).outcome) == ("Name (DNS)", Outcome.FAILED)


def test_an_address_that_is_not_allowed_is_not_dialled(diagnosis_of, server):
    made = diagnosis_of(server, is_allowed=lambda _: False)
    assert last(made).name == "Address allowed"
    assert last(made).findings[0].fixer is Fixer.OPERATOR
    assert server.connections == 0


def test_nobody_listening_ends_the_walk(diagnosis_of):
    with raw_server() as gone:
        url = gone.url
    made = diagnosis_of(url)
    assert (last(made).name, last(made).words) == (
        "Connection (TCP)",
        "The server refuses connections.",
    )


@pytest.fixture(scope="module")
def authority():
    return Authority()


@pytest.mark.parametrize(
    ("days", "outcome"), [(365, Outcome.OK), (5, Outcome.NOTE), (-1, Outcome.FAILED)]
)
def test_a_certificate_tells_its_end(diagnosis_of, authority, tmp_path, days, outcome):
    with raw_server(tls=authority.context_for(tmp_path, days)) as server:
        made = diagnosis_of(server, fields={"ca_bundle": authority.bundle})
    found = step(made, "Encryption (TLS)")
    assert found.outcome is outcome
    if outcome is Outcome.FAILED:
        assert "certificate has expired" in found.words
    else:
        assert f"({days} days)" in found.words
        assert made.is_reached


def test_a_certificate_of_an_unknown_authority_ends_the_walk(diagnosis_of, authority, tmp_path):
    with raw_server(tls=authority.context_for(tmp_path)) as server:
        made = diagnosis_of(server)
    assert "certificate is not valid" in last(made).words
    assert "CA bundle" in last(made).findings[0].words


@pytest.mark.requirement("D12")
@pytest.mark.parametrize(
    ("status", "location", "outcome", "words"),
    [
        (307, "/mcp/", Outcome.NOTE, "/mcp/ on the same server"),
        (301, "https://example.com/mcp", Outcome.FAILED, "https://example.com"),
        (307, "http://169.254.169.254/", Outcome.FAILED, "may not reach"),
    ],
)
def test_a_redirect_is_told_with_what_the_host_makes_of_it(
    diagnosis_of, server, status, location, outcome, words
):
    def moved(request):
        if request.path == "/mcp":
            return Reply(status, {"location": location})

    server.intercept = moved
    made = diagnosis_of(server)
    found = step(made, "First answer (HTTP)")
    assert found.outcome is outcome
    assert words in found.words
    assert made.is_reached is (outcome is Outcome.NOTE)


@pytest.mark.parametrize("status", [400, 401, 404, 500])
def test_a_first_answer_that_looks_like_a_failure_is_said_to_be_none(diagnosis_of, server, status):
    server.intercept = lambda _: Reply(status)
    found = step(diagnosis_of(server), "First answer (HTTP)")
    assert found.outcome is Outcome.OK
    assert f"HTTP {status}, without a redirect. Any answer will do here" in found.words


def test_silence_and_a_dropped_socket_end_the_walk_in_time(diagnosis_of, server):
    def drop(_):
        raise Drop

    for intercept, words in ((lambda _: forever(), "was not over"), (drop, "dropped")):
        server.intercept = intercept
        started = time.monotonic()
        made = diagnosis_of(server, total_seconds=2)
        assert time.monotonic() - started < 3
        assert words in last(made).words
        assert made.verdict is Verdict.UNREACHABLE


@pytest.mark.requirement("D11")
def test_a_server_that_wants_a_sign_in_is_no_old_server(diagnosis_of, server):
    challenge = {"www-authenticate": 'Bearer error="insufficient_scope", scope="mail.read"'}
    server.intercept = lambda _: Reply(403, challenge)
    made = diagnosis_of(server, fields={"headers": (("Authorization", f"Bearer {MARKER}"),)})
    assert step(made, "Protocol").outcome is Outcome.SKIPPED
    found = step(made, "Credential")
    assert found.findings[0].fixer is Fixer.ADMIN
    assert "mail.read" in found.words
    assert server.count("initialize") == 0


def test_a_401_says_what_is_known_of_the_sign_in(diagnosis_of, server):
    server.intercept = lambda request: Reply(401 if request.verb == "POST" else 404)
    found = step(diagnosis_of(server), "Credential")
    assert found.words == "The server wants a sign-in (HTTP 401)."
    assert "does not say where to sign in" in found.findings[1].words


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (lambda _: Reply(503), "HTTP 503"),
        (lambda _: Reply(body=b"<html>", content_type="text/html"), "text/html instead of JSON"),
        (lambda _: Reply(body=b"[1]"), "JSON-RPC"),
    ],
)
def test_what_is_no_mcp_server_ends_the_walk_at_the_protocol(diagnosis_of, server, reply, words):
    server.intercept = reply
    made = diagnosis_of(server)
    assert (last(made).name, made.verdict) == ("Protocol", Verdict.UNREACHABLE)
    assert words in last(made).words


def test_each_listing_and_each_read_fails_alone(diagnosis_of, server):
    publish(server, entry(), entry("tasks"), entry("bad", title=None))
    server.on("tools/list", lambda _: Reply(500))
    server.on(
        "resources/read",
        lambda request: forever() if "tasks" in request.params["uri"] else count("three"),
    )
    server.on("resources/templates/list", lambda _: Error(-32603, "out of order"))
    made = diagnosis_of(server)
    assert made.verdict is Verdict.BROKEN
    failed = {each.name: each.words for each in made.steps if each.outcome is Outcome.FAILED}
    assert failed == {
        "Resources": "3 entries on 1 page, 2 of them facets.",
        "Resource templates": "The server answers with an error: out of order",
        "Tools": "The server cannot answer (HTTP 500).",
        "Facet “Drafts awaiting review”": "Unavailable.",
        "Facet “Tasks awaiting review”": "The server did not answer within 1 s.",
    }
    assert "whole number" in step(made, "Facet “Drafts").findings[0].words


def test_a_server_that_hangs_everywhere_is_left_when_the_time_is_over(diagnosis_of, server):
    for method in ("resources/list", "resources/templates/list", "tools/list"):
        server.on(method, lambda _: forever())
    started = time.monotonic()
    made = diagnosis_of(server, total_seconds=2)
    assert time.monotonic() - started < 3
    assert step(made, "Tools").outcome is Outcome.FAILED


def test_both_eras_are_tried_and_compared(diagnosis_of):
    with raw_server(revisions=(MODERN, LEGACY), capabilities=FACETED) as server:
        publish(server, entry())
        made = diagnosis_of(server, is_both_eras=True)
        assert made.verdict is Verdict.OK
        assert step(made, "As a host of 2025").words == "The server speaks 2025-11-25 too."
        assert step(made, "Facet “Drafts awaiting review” (2025-11-25)").outcome is Outcome.OK
        only_2025 = {"protocolVersion": LEGACY, "capabilities": {"resources": {}}, "serverInfo": {}}
        server.intercept = lambda request: only_2025 if request.method == "initialize" else None
        made = diagnosis_of(server, is_both_eras=True)
        found = step(made, "Capabilities (2025-11-25)")
        assert (found.outcome, made.verdict) == (Outcome.NOTE, Verdict.OK)
        assert "sees no facets" in found.findings[0].words


def test_an_extension_of_2025_only_is_broken_for_this_host(diagnosis_of):
    with raw_server(revisions=(MODERN, LEGACY), capabilities={"resources": {}}) as server:
        publish(server)
        both = {"protocolVersion": LEGACY, "capabilities": FACETED, "serverInfo": {}}
        server.intercept = lambda request: both if request.method == "initialize" else None
        made = diagnosis_of(server, is_both_eras=True)
    assert "server/discover" in step(made, "Capabilities (2025-11-25)").findings[0].words
    assert made.verdict is Verdict.BROKEN


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_a_server_of_one_era_is_no_fault(diagnosis_of, revision):
    with raw_server(revisions=(revision,), capabilities=FACETED) as server:
        publish(server, entry())
        made = diagnosis_of(server, is_both_eras=True)
    assert made.verdict is Verdict.OK
    assert revision in step(made, "Protocol").words


def test_no_secret_is_in_any_words(diagnosis_of, server):
    """Whatever echoes it: titles, errors, challenges, names."""
    hidden = "hidden-part-of-the-address"
    publish(server, entry(title=f"Say {MARKER} {hidden}"))
    server.on("resources/read", lambda _: Error(-32603, f"{MARKER} {hidden}"))
    server.on(
        "tools/list", lambda _: {"tools": [{"name": MARKER, "_meta": {RESOURCE_ARGUMENTS: 1}}]}
    )
    headers = (("Authorization", f"Bearer {MARKER}"),)
    made = diagnosis_of(server, [hidden], fields={"headers": headers})
    assert made.verdict is Verdict.BROKEN
    for text in (as_text(made), str(as_json(made))):
        assert MARKER not in text
        assert hidden not in text
        assert "[secret]" in text


def test_a_credential_that_changes_is_asked_for_and_hidden(diagnosis_of, server):
    class Changing:
        async def value(self, refused=None):
            return f"Bearer {MARKER}" if refused is None else Fault(FaultKind.UNAUTHORIZED, "Over.")

        async def lacks(self, scope):
            pass

    server.on("resources/read", lambda _: Error(-32603, MARKER))
    made = diagnosis_of(server, fields={"authorization": Changing()})
    assert step(made, "Credential").words == "The server accepts what is sent."
    assert MARKER not in as_text(made)
    server.intercept = lambda request: Reply(401)
    assert step(diagnosis_of(server, fields={"authorization": Changing()}), "Credential").words == (
        "Over."
    )


def test_the_text_names_each_step_once_and_who_can_fix_it(diagnosis_of, server):
    publish(server, entry(title=None))
    text = as_text(diagnosis_of(server))
    assert text.startswith("Diagnosis of it\nok     Name (DNS): 127.0.0.1 is an address")
    assert "FAILED Resources: 1 entry on 1 page, 0 of them facets." in text
    assert f"! Left out: “drafts”: title is missing or not text. [{Fixer.AUTHOR}]" in text
    assert text.endswith(
        "The server answers, and 1 step failed: Resources. "
        "Whoever makes or runs the server can fix it."
    )


def test_many_bad_entries_are_summed_up(diagnosis_of, server):
    publish(server, *(entry(f"bad-{number}", title=None) for number in range(500)))
    found = step(diagnosis_of(server), "Resources").findings
    assert len(found) == 21
    assert found[-1].words == "And 480 more."
