"""Finding out how to sign in to a server, and becoming a client of who signs people in.

Async: every address in here was named by a stranger and is dialled through `http.send`.
Source: RFC 9728, RFC 8414, RFC 7591; MCP 2026-07-28, "Authorization".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls as server_metadata_urls,
)
from mcp.client.auth.utils import (
    build_protected_resource_metadata_discovery_urls as resource_metadata_urls,
)

from connectors.inputs import origin_of
from connectors.oauth.http import Answer, send
from connectors.oauth.metadata import (
    AuthorizationServer,
    IsAllowed,
    Problem,
    Resource,
    host_of,
    is_secure,
    parse_resource,
    parse_server,
    words_of,
)
from connectors.oauth.tokens import METHODS, Client, client_of
from connectors.protocol.challenges import Challenge, parse_challenge
from connectors.sessions import Fault
from connectors.sessions.faults import WireFault
from connectors.sessions.http_rules import endpoint_of, followed

TAKES_TOKEN = " If it takes a token, set one under Configure."
MAX_ISSUERS = 3
MAX_REDIRECTS = 3
PROBE = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {}}).encode()
PROBE_HEADERS = {
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
}


@dataclass(frozen=True, slots=True)
class Found:
    """Where to sign in, and for what. resource: sent exactly as it is."""

    server: AuthorizationServer
    resource: str
    scope: str


async def discover(
    url: str, headers: Mapping[str, str], is_allowed: IsAllowed, ca_bundle: str = ""
) -> Found | Problem:
    """Ask a server who signs people in to it.

    headers: what else the connector sends, without a credential. ca_bundle: the connector's own.
    """
    challenge = await _challenge(url, headers, is_allowed, ca_bundle)
    if isinstance(challenge, Problem):
        return challenge
    resource = await _resource(url, challenge, is_allowed, ca_bundle)
    if isinstance(resource, Problem):
        return resource
    # Without metadata the server's own origin is asked, as MCP 2025-03-26 had it.
    issuers = resource.issuers if resource else (origin_of(url),)
    problem = Problem(f"{host_of(url)} does not say where to sign in.{TAKES_TOKEN}")
    for issuer in issuers[:MAX_ISSUERS]:
        server = await _server(issuer, is_allowed, ca_bundle)
        if isinstance(server, AuthorizationServer):
            scope = challenge.scope or (resource.scope if resource else "")
            identifier = resource.identifier if resource else url.partition("#")[0]
            return Found(server, identifier, scope)
        problem = server or problem
    return problem


async def _challenge(
    url: str, headers: Mapping[str, str], is_allowed: IsAllowed, ca_bundle: str
) -> Challenge | Problem:
    """What the server says when it is asked without a credential; empty when it says nothing."""
    for _ in range(MAX_REDIRECTS + 1):
        answer = await send(
            "POST",
            url,
            headers={**headers, **PROBE_HEADERS},
            body=PROBE,
            is_allowed=is_allowed,
            ca_bundle=ca_bundle,
        )
        if isinstance(answer, Fault):
            return Problem(f"{host_of(url)} cannot be asked how to sign in: {answer.message}")
        if answer.location is None or not 300 <= answer.status < 400:
            return parse_challenge(answer.challenge if answer.status in (401, 403) else None)
        try:
            url = str(followed(answer.status, endpoint_of(url), answer.location, is_allowed))
        except WireFault as error:
            return Problem(error.fault.message)
    return Challenge()


async def _resource(
    url: str, challenge: Challenge, is_allowed: IsAllowed, ca_bundle: str
) -> Resource | Problem | None:
    passing: Problem | None = None
    for place in resource_metadata_urls(challenge.resource_metadata or None, url):
        if not is_secure(place, is_allowed) and origin_of(place) != origin_of(url):
            continue
        answer = await send("GET", place, is_allowed=is_allowed, ca_bundle=ca_bundle)
        if _is_passing(answer):
            passing = _not_now(place, answer)
        elif isinstance(answer, Answer) and answer.status == 200:
            found = parse_resource(answer.value, url)
            if found is not None:
                return found
    # An outage says nothing about whether there is metadata, so nothing else is tried.
    return passing


async def _server(
    issuer: str, is_allowed: IsAllowed, ca_bundle: str
) -> AuthorizationServer | Problem | None:
    if not is_secure(issuer, is_allowed):
        return Problem(
            f"The server sends people to {words_of(issuer, 100)} to sign in, which is not reached "
            "over https. Tell who runs the server."
        )
    for place in server_metadata_urls(issuer, issuer):
        answer = await send("GET", place, is_allowed=is_allowed, ca_bundle=ca_bundle)
        if isinstance(answer, Fault) or _is_passing(answer):
            return _not_now(place, answer)
        found = parse_server(answer.value, issuer, is_allowed) if answer.status == 200 else None
        if found is not None:
            return found
    return None


def _is_passing(answer: Answer | Fault) -> bool:
    return isinstance(answer, Fault) or answer.status >= 500 or answer.status == 429


def _not_now(url: str, answer: Answer | Fault) -> Problem:
    why = answer.message if isinstance(answer, Fault) else f"it answers HTTP {answer.status}."
    return Problem(f"{host_of(url)} cannot be asked how to sign in: {why} Try again later.")


async def register(
    server: AuthorizationServer,
    metadata: Mapping[str, object],
    is_allowed: IsAllowed,
    ca_bundle: str = "",
) -> Client | Problem:
    """Become a client of an authorization server that takes anybody (RFC 7591).

    metadata: what we are. Done anew for each sign-in: a client that the server has since
    forgotten shows itself only on a page of the server's, which nobody comes back from.
    """
    assert server.registration_endpoint is not None
    method = next((each for each in METHODS if each in server.methods), "none")
    body = json.dumps({**metadata, "token_endpoint_auth_method": method}).encode()
    answer = await send(
        "POST",
        server.registration_endpoint,
        headers={"content-type": "application/json"},
        body=body,
        is_allowed=is_allowed,
        ca_bundle=ca_bundle,
    )
    if isinstance(answer, Fault) or _is_passing(answer):
        return _not_now(server.registration_endpoint, answer)
    value = answer.value if isinstance(answer.value, dict) else {}
    client_id, secret = value.get("client_id"), value.get("client_secret")
    if answer.status not in (200, 201) or not isinstance(client_id, str) or not client_id:
        said = words_of(value.get("error_description")) or words_of(value.get("error"))
        why = said or f"HTTP {answer.status}"
        return Problem(
            f"{server.host} does not accept this host: {why}. Ask who runs it for a client ID."
        )
    given = secret if isinstance(secret, str) and secret else None
    assigned = value.get("token_endpoint_auth_method")
    if (assigned or method) == "none":
        given = None  # Some servers give everybody a secret.
    client = client_of(client_id, given, server.methods, assigned)
    return client or Problem(
        f"{server.host} wants this host to prove itself in a way that it cannot. "
        "Ask who runs it for a client ID with a client secret."
    )
