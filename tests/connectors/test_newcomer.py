"""A newcomer with a broken server, and Diagnose alone.

Each server here is broken in one way. Whoever reads the diagnosis, as an admin on the page or as
the server's author at the command line, has to find: where it fails, what that means, who can fix
it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from connectors.diagnosis.record import Terms
from connectors.diagnosis.values import Fixer, Outcome
from connectors.diagnosis.walk import walk
from connectors.protocol.identifiers import FACETS, RESOURCE_ARGUMENTS
from connectors.runtime import close_runtime
from connectors.sessions import Limits
from tests.connectors.diagnosing import diagnose_server
from tests.connectors.session_host import claims, loopback_only, target_of
from tests.overview.factories import entry
from tests.overview.served import FACETED, count, publish, text
from tests.servers.certificates import Authority
from tests.servers.raw import LEGACY, MODERN, Drop, Error, Reply, forever, raw_server
from workspaces.background import BackgroundLoop

ADMIN, OPERATOR, AUTHOR = Fixer.ADMIN, Fixer.OPERATOR, Fixer.AUTHOR


@pytest.fixture(autouse=True)
def _quick(settings):
    settings.CONNECT_SECONDS = 1
    settings.FACET_READ_TIMEOUT_SECONDS = 0.5
    yield
    close_runtime()


@pytest.fixture(scope="module")
def authority():
    return Authority()


@pytest.fixture(scope="module")
def diagnosed():
    """As the page of a connector does it: the diagnosis."""
    loop = BackgroundLoop("diagnosis")
    terms = Terms(
        limits=Limits(connect_seconds=1, close_seconds=0.3),
        claims=claims,
        is_allowed=loopback_only,
        read_seconds=0.5,
        total_seconds=12,
    )
    yield lambda url, **fields: loop.run(walk("it", target_of(url, **fields), terms), 20)
    loop.close()


@dataclass
class Fault:
    """at: the step that fails. words: in what is said of it. status: of the command."""

    at: str
    words: str
    fixer: Fixer
    status: int = 2


def found(made, fault):
    """The fault is named at one step, with its meaning, and everything reads as sentences."""
    assert fault.at in made.summary
    assert fault.fixer[1:] in made.summary
    failed = [each for each in made.steps if each.outcome is Outcome.FAILED]
    first = next(each for each in failed if each.name.startswith(fault.at))
    said = " ".join([first.words, *(each.words for each in first.findings)])
    assert fault.words in said, said
    assert fault.fixer in {each.fixer for each in first.findings}, said
    for step in failed:
        assert any(each.is_failure for each in step.findings), step
        for finding in step.findings:
            assert finding.words.endswith("."), finding.words


def asserted(made, url, fault, *words):
    found(made, fault)
    printed, status = diagnose_server(url, *words)
    assert status == fault.status, printed
    assert fault.at in printed.splitlines()[-1]
    assert "Configure" not in printed, "There is no such page for an author."


# Between the address and MCP.


def test_nobody_listens(diagnosed):
    with raw_server() as gone:
        url = gone.url
    fault = Fault("Connection (TCP)", "Look whether the server runs, and whether", AUTHOR)
    asserted(diagnosed(url), url, fault)


def test_its_name_is_not_known(diagnosed):
    url = "https://no-such-host.invalid/mcp"
    fault = Fault("Name (DNS)", "Look for a typing error in no-such-host.invalid", ADMIN)
    asserted(diagnosed(url), url, fault)


def test_its_address_is_not_allowed(diagnosed):
    """At the command line it is: it runs on the author's own machine."""
    made = diagnosed("http://169.254.169.254/mcp")
    words = "The setting CONNECTOR_ALLOWED_NETWORKS allows more"
    found(made, Fault("Address allowed", words, OPERATOR))


TLS = "Encryption (TLS)"


@pytest.mark.parametrize(
    ("days", "names", "is_trusted", "fault"),
    [
        (-1, ("localhost",), True, Fault(TLS, "The certificate is over: renew it.", AUTHOR)),
        (9, ("other.example.com",), True, Fault(TLS, "is for another name", ADMIN)),
        (9, ("localhost",), False, Fault(TLS, "from an authority that is not known", ADMIN)),
        (0, None, False, Fault(TLS, "from an authority that is not known", ADMIN)),
    ],
    ids=["expired", "wrong name", "own authority", "self-signed"],
)
def test_its_certificate_is_not_valid(
    diagnosed, authority, tmp_path, days, names, is_trusted, fault
):
    path = tmp_path / "ca.pem"
    path.write_text(authority.bundle)
    tls = authority.context_for(tmp_path, days, names) if names else authority.self_signed(tmp_path)
    bundle = ["--ca-bundle", str(path)] if is_trusted else []
    with raw_server(tls=tls) as server:
        made = diagnosed(server.url, ca_bundle=authority.bundle if is_trusted else "")
        asserted(made, server.url, fault, *bundle)


def test_its_port_speaks_https(diagnosed, authority, tmp_path):
    with raw_server(tls=authority.context_for(tmp_path)) as server:
        url = server.url.replace("https", "http")
        fault = Fault("First answer (HTTP)", "then the address begins with https://", ADMIN)
        asserted(diagnosed(url), url, fault)


def moved(status, location):
    """It redirects /mcp, and serves whatever else is asked."""

    def turn(server):
        reply = Reply(status, {"location": location})
        server.intercept = lambda request: reply if request.path == "/mcp" else None

    return turn


def answers(reply):
    def turn(server):
        server.intercept = lambda request: reply(request) if callable(reply) else reply

    return turn


def drops(_):
    raise Drop


def page(_):
    return Reply(body=b"<html>Welcome", content_type="text/html; charset=utf-8")


def scope_missing(_):
    return Reply(403, {"www-authenticate": 'Bearer error="insufficient_scope", scope="mail.read"'})


def signs_in(request):
    """401 with metadata that leads to an authorization server at the same address."""
    base = f"http://{request.headers['host']}"
    metadata: dict[str, Any] = {
        "/.well-known/oauth-protected-resource/mcp": {
            "resource": f"{base}/mcp",
            "authorization_servers": [base],
        },
        "/.well-known/oauth-authorization-server": {
            "issuer": base,
            "authorization_endpoint": f"{base}/authorize",
            "token_endpoint": f"{base}/token",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
        },
    }
    if request.path in metadata:
        return Reply(body=json.dumps(metadata[request.path]).encode())
    return Reply(401 if request.verb == "POST" else 404)


FIRST, PROTOCOL, CREDENTIAL = "First answer (HTTP)", "Protocol", "Credential"
OUTSIDE = {
    "it redirects elsewhere": (
        moved(307, "https://other.example.com/mcp"),
        Fault(FIRST, "redirects to https://other.example.com", ADMIN),
    ),
    "it redirects inside": (
        moved(307, "http://169.254.169.254/"),
        Fault(FIRST, "Nobody is led to such an address", AUTHOR),
    ),
    "it hangs up": (answers(drops), Fault(FIRST, "look for a crash in its log", AUTHOR)),
    "its path is another one": (
        answers(Reply(404)),
        Fault(PROTOCOL, "this path is no MCP endpoint; its path is often /mcp", ADMIN),
    ),
    "its path takes no POST": (answers(Reply(405)), Fault(PROTOCOL, "no MCP endpoint", ADMIN)),
    "it is a web site": (answers(page), Fault(PROTOCOL, "another service, or a web page", ADMIN)),
    "it is another API": (answers(Reply(body=b"{}")), Fault(PROTOCOL, "no MCP endpoint", ADMIN)),
    "it is down behind its proxy": (
        answers(Reply(502, body=b"<html>Bad gateway", content_type="text/html")),
        Fault(PROTOCOL, "or the proxy in front of it, is in trouble", AUTHOR),
    ),
    "it wants fewer requests": (answers(Reply(429)), Fault(PROTOCOL, "Wait.", AUTHOR)),
    "it wants a token": (
        answers(lambda request: Reply(401 if request.verb == "POST" else 404)),
        Fault(CREDENTIAL, "a token or a header", ADMIN),
    ),
    "it wants a sign-in": (answers(signs_in), Fault(CREDENTIAL, "Sign in on the", ADMIN)),
    "it forbids": (answers(Reply(403)), Fault(CREDENTIAL, "credential that may do this", ADMIN)),
    "it wants a permission": (
        answers(scope_missing),
        Fault(CREDENTIAL, "lacks: mail.read", ADMIN),
    ),
}


@pytest.fixture
def server():
    """Without fault, in both eras."""
    with raw_server(revisions=(MODERN, LEGACY), capabilities={**FACETED, "tools": {}}) as server:
        publish(server, entry())
        server.on("resources/templates/list", {"resourceTemplates": []})
        server.on("tools/list", {"tools": []})
        yield server


def test_a_server_without_fault_has_none(diagnosed, server):
    assert diagnosed(server.url).summary == "Every step went well."
    assert diagnose_server(server.url)[1] == 0


@pytest.mark.parametrize("name", OUTSIDE)
def test_what_is_met_before_mcp(diagnosed, server, name):
    turn, fault = OUTSIDE[name]
    turn(server)
    asserted(diagnosed(server.url), server.url, fault)


def test_a_token_that_is_not_accepted_is_said_to_be_that(diagnosed, server):
    server.intercept = lambda request: Reply(401 if request.verb == "POST" else 404)
    made = diagnosed(server.url, headers=(("Authorization", "Bearer wrong-token"),))
    found(made, Fault(CREDENTIAL, "What is sent is not accepted. Enter a token", ADMIN))


def test_it_speaks_no_revision_that_is_known(diagnosed):
    with raw_server(revisions=("2023-01-01",), capabilities={}) as server:
        fault = Fault(PROTOCOL, "no revision of MCP that this host knows", ADMIN)
        asserted(diagnosed(server.url), server.url, fault)


# What it says of itself, lists and answers.


def capable(**capabilities):
    return lambda server: setattr(server, "capabilities", capabilities)


def lists(*entries):
    return lambda server: publish(server, *entries)


def reads(outcome):
    def answered(request):
        return outcome(request) if callable(outcome) else outcome

    return lambda server: server.on("resources/read", answered)


def templates(*texts):
    entries = [{"uriTemplate": each} for each in texts]
    return lambda server: server.on("resources/templates/list", {"resourceTemplates": entries})


def declares(argument, properties=None):
    declared = {"arguments": {"cited": argument}}
    schema = {"properties": {"cited": {}} if properties is None else properties}
    tool = {"name": "send", "inputSchema": schema, "_meta": {RESOURCE_ARGUMENTS: declared}}
    return lambda server: server.on("tools/list", {"tools": [tool]})


def loops(server):
    entries = [entry(f"f-{number}") for number in range(2)]
    server.on("resources/list", {"resources": entries, "nextCursor": "again"})


def refuses(method, error):
    return lambda server: server.on(method, lambda _: error)


RESOURCES, TOOLS, FACET = "Resources", "Tools", "Facet “Drafts awaiting review”"
INSIDE = {
    "facets without resources": (
        capable(extensions={FACETS: {}}),
        "Capabilities",
        "without the resources capability",
    ),
    "facets under experimental": (
        capable(resources={}, experimental={FACETS: {}}),
        "Capabilities",
        "It belongs under “extensions”",
    ),
    "facets with settings that are none": (
        capable(resources={}, extensions={FACETS: True}),
        "Capabilities",
        "Advertise it with {}",
    ),
    "facets of another name": (
        capable(resources={}, extensions={f"{FACETS}-v2": {}}),
        "Capabilities",
        "the identifier is compared exactly",
    ),
    "facets that are not advertised": (
        capable(resources={}),
        RESOURCES,
        "the server does not advertise ai.nimblebrain/facets",
    ),
    "a facet without a title": (lists(entry(title=None)), RESOURCES, "title is missing"),
    "a facet of another type": (
        lists(entry(mimeType="application/json; charset=utf-8")),
        RESOURCES,
        "mimeType must be exactly application/json",
    ),
    "a mark that is none": (lists(entry(_meta={FACETS: True})), RESOURCES, "Mark it with {}"),
    "two facets of one name": (lists(entry(), entry()), RESOURCES, "has the same name"),
    "a listing without an end": (loops, RESOURCES, "The last page has no nextCursor"),
    "a listing that is not there": (
        refuses("resources/list", Error(-32601, "Method not found")),
        RESOURCES,
        "answer it, or leave the capability out",
    ),
    "a listing that hangs": (
        lambda server: server.on("resources/list", lambda _: forever()),
        RESOURCES,
        "no answer comes in time",
    ),
    "a count as text": (reads(count("3")), FACET, 'such as {"count": 3}'),
    "a count below 0": (reads(count(-1)), FACET, "not a whole number of 0 or more"),
    "no count": (reads(text('{"total": 3}')), FACET, "the object has no count"),
    "a count that is no JSON": (reads(text("three")), FACET, "the text is not JSON"),
    "a count in another type": (
        reads(text('{"count": 3}', mimeType="text/plain")),
        FACET,
        "mimeType is not application/json",
    ),
    "a read without contents": (reads({"contents": []}), FACET, "has no contents"),
    "a read that hangs": (reads(lambda _: forever()), FACET, "did not answer within 0.5 s"),
    "a read that fails": (
        reads(Error(-32603, "the database is gone")),
        FACET,
        "answers with an error: the database is gone",
    ),
    "a template that is none": (
        templates("crm://{id"),
        "Resource templates",
        "A template is written like crm://signals/{id}",
    ),
    "a scheme that is a wildcard": (declares({"schemes": ["*"]}), TOOLS, "there is no wildcard"),
    "a scheme with slashes": (declares({"schemes": ["crm://"]}), TOOLS, "write its name alone"),
    "no schemes": (declares({}), TOOLS, "“schemes” is missing"),
    "an argument that is not there": (
        declares({"schemes": ["crm"]}, {}),
        TOOLS,
        "inputSchema has no such property",
    ),
    "an argument that is a number": (
        declares({"schemes": ["crm"]}, {"cited": {"type": "integer"}}),
        TOOLS,
        "only a string or a list of strings is read",
    ),
}


@pytest.mark.parametrize("name", INSIDE)
def test_what_a_server_itself_does_wrong(diagnosed, server, name):
    turn, at, words = INSIDE[name]
    turn(server)
    asserted(diagnosed(server.url), server.url, Fault(at, words, AUTHOR, status=1))
