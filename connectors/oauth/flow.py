"""A sign-in in two requests: out to the authorization server, and back from it with a code.

Shell, synchronous. All that the second request needs waits in the database, encrypted, because
another process may get it.
Source: MCP 2026-07-28, "Authorization"; OAuth 2.1; RFC 7636, RFC 8707, RFC 9207.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from collections.abc import Coroutine, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlencode

from django.conf import settings
from django.utils import timezone

from connectors.errors import SecretUnreadable
from connectors.models import Connector, OAuthGrant, PendingSignIn, SecretKind, Transport
from connectors.oauth import acts
from connectors.oauth.discovery import Found, discover, register
from connectors.oauth.http import Answer, send
from connectors.oauth.metadata import (
    AuthorizationServer,
    Problem,
    host_of,
    is_same_issuer,
    words_of,
)
from connectors.oauth.site import Site
from connectors.oauth.tokens import (
    Client,
    Refusal,
    Tokens,
    client_of,
    parse_answer,
    token_request,
)
from connectors.protocol.challenges import clean_scope
from connectors.queries import target_to
from connectors.runtime import is_allowed_address, let_go_of_database
from workspaces.background import background
from workspaces.models import User

T = TypeVar("T")

DISCOVERY_SECONDS = 30
MAX_ISSUER_CHARS = 180  # What fits into a secret's name.


@dataclass(frozen=True, slots=True)
class Plan:
    """What the way back needs to know of the way out."""

    issuer: str
    names_itself: bool
    token_endpoint: str
    resource: str
    scope: str
    redirect_uri: str
    client: str = field(repr=False)
    verifier: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Departure:
    """Where to send the browser. host: whom the person will be asked by."""

    url: str = field(repr=False)
    host: str


def begin(connector: Connector, site: Site, *, by: User) -> Departure | Problem:
    """Find out where to sign in, become a client there, and remember what is under way.

    A problem changes nothing, but for a client that has to be entered: the connector then
    requires it.
    """
    if connector.transport != Transport.HTTP:
        return Problem("Only servers that are reached over http take a sign-in.")
    try:
        target = target_to(connector)
    except SecretUnreadable:
        return Problem("A stored secret cannot be decrypted: enter it again under Configure.")
    headers = {
        name.lower(): value for name, value in target.headers if name.lower() != "authorization"
    }
    found = _run(discover(target.url, headers, is_allowed_address, connector.ca_bundle))
    if isinstance(found, Problem):
        return found
    client = _client_for(connector, found.server, site)
    if isinstance(client, Problem):
        return client
    plan = Plan(
        issuer=found.server.issuer,
        names_itself=found.server.names_itself,
        token_endpoint=found.server.token_endpoint,
        resource=found.resource,
        scope=_scope_for(connector, found),
        redirect_uri=site.redirect_uri,
        client=client.to_json(),
        verifier=secrets.token_urlsafe(64),
    )
    state = secrets.token_urlsafe(32)
    acts.begin_sign_in(connector, state, json.dumps(asdict(plan)), by=by, now=timezone.now())
    return Departure(_authorization_url(found.server, plan, client, state), found.server.host)


def finish(pending: PendingSignIn, said: Mapping[str, str]) -> Problem | None:
    """Trade the code that somebody came back with for tokens, and have the connector tried.

    pending: as `acts.take_pending` gave it. said: the query of the request, untrusted.
    """
    plan = Plan(**json.loads(pending.plan))
    outcome = _tokens(plan, said, pending.connector.ca_bundle)
    if isinstance(outcome, Tokens):
        facts = {
            "issuer": plan.issuer,
            "token_endpoint": plan.token_endpoint,
            "resource": plan.resource,
            "scope": plan.scope if outcome.scope is None else outcome.scope,
        }
        client = Client.from_json(plan.client)
        now = timezone.now()
        if acts.finish_sign_in(pending.connector, facts, client, outcome, pending.user, now):
            return None
        return Problem("The connector was changed during the sign-in. Sign in again.")
    if said.get("error") == "invalid_scope":
        # First: whoever finds the sign-in ended must not be led to the same refusal again.
        acts.forget_scopes(pending.connector)
    acts.end_sign_in(pending.connector, outcome.message)
    return outcome


def _tokens(plan: Plan, said: Mapping[str, str], ca_bundle: str) -> Tokens | Problem:
    host, issuer = host_of(plan.issuer), said.get("iss")
    # Before anything else in the answer is believed: it may be another server's (RFC 9207).
    if issuer != plan.issuer and (issuer is not None or plan.names_itself):
        return Problem(
            f"The answer did not come from {host}, where the sign-in began. It is not used, "
            "because that may be an attack. Sign in again, and tell who runs the server if it "
            "happens again."
        )
    if error := said.get("error"):
        return _refused(host, error, said.get("error_description", ""))
    if not said.get("code"):
        return Problem(f"{host} sent you back without an answer. Sign in again.")
    form = {
        "grant_type": "authorization_code",
        "code": said["code"],
        "redirect_uri": plan.redirect_uri,
        "code_verifier": plan.verifier,
        "resource": plan.resource,
    }
    headers, body = token_request(Client.from_json(plan.client), form)
    answer = _run(
        send(
            "POST",
            plan.token_endpoint,
            headers=headers,
            body=body,
            is_allowed=is_allowed_address,
            ca_bundle=ca_bundle,
        )
    )
    if not isinstance(answer, Answer):
        return Problem(f"{host} could not be reached to finish the sign-in. Sign in again.")
    outcome = parse_answer(answer.value, timezone.now())
    if isinstance(outcome, Tokens) and answer.status < 300:
        return outcome
    why = f"HTTP {answer.status}"
    if isinstance(outcome, Refusal):
        why = outcome.description or outcome.code
    return Problem(f"{host} did not finish the sign-in ({why}). Sign in again.")


def _refused(host: str, error: str, description: str) -> Problem:
    match error:
        case "access_denied":
            return Problem(
                f"{host} gave no access: it was declined there, or your account may not give it. "
                "Sign in again to try with another account."
            )
        case "temporarily_unavailable" | "server_error":
            return Problem(f"{host} cannot sign anybody in now. Sign in again later.")
        case "invalid_scope":
            words = f"{host} does not know a permission that the server asks for"
        case _:
            words = f"{host} refused the sign-in"
    why = words_of(description) or words_of(error, 60)
    return Problem(f"{words} ({why}). Tell who runs the server.")


def _client_for(connector: Connector, server: AuthorizationServer, site: Site) -> Client | Problem:
    """The client that was given for this very issuer, or else one that nobody has to enter.

    Source: MCP 2026-07-28, "Client Registration Approaches", for the order.
    """
    if given := _given_client(connector, server.issuer):
        client = client_of(*given, server.methods)
        return client or Problem(
            f"The client ID at {server.host} needs a client secret of the kind it accepts. "
            "Correct them under Configure."
        )
    if server.takes_documents and site.document_url:
        return Client(site.document_url)
    if server.registration_endpoint:
        return _run(register(server, site.metadata, is_allowed_address, connector.ca_bundle))
    if len(server.issuer) <= MAX_ISSUER_CHARS:
        acts.ask_for_client(connector, server.issuer)
    return Problem(
        f"{server.host} takes only clients that are registered there. Register this host with the "
        f"redirect address {site.redirect_uri}, then enter the client ID under Configure."
    )


def _given_client(connector: Connector, issuer: str) -> tuple[str, str | None] | None:
    """The id and secret that an admin, or else the operator, gave for an issuer."""
    values = {
        each.name: each.value
        for each in connector.secrets.filter(kind=SecretKind.CLIENT, name__endswith=f"@{issuer}")
    }
    if client_id := values.get(f"client_id@{issuer}"):
        return client_id, values.get(f"client_secret@{issuer}")
    for key, operators in settings.OAUTH_CLIENTS.items():
        if is_same_issuer(key, issuer):
            return operators["client_id"], operators.get("client_secret")
    return None


def _scope_for(connector: Connector, found: Found) -> str:
    """What the server asks for now, with what was granted before and what it has missed since."""
    # Not the tokens: a sign-in is also the way out when nobody can decrypt them any more.
    grants = OAuthGrant.objects.filter(connector=connector, issuer=found.server.issuer)
    granted = [text for row in grants.values_list("scope", "missing_scope") for text in row]
    scope = clean_scope(" ".join([*granted, found.scope]))
    if scope and found.server.offers_offline_access:
        # Where it exists there is no refresh token without it: OpenID Connect Core, section 11.
        return clean_scope(f"{scope} offline_access")
    return scope


def _run(work: Coroutine[Any, Any, T]) -> T | Problem:
    let_go_of_database()
    try:
        return background().run(work, DISCOVERY_SECONDS)
    except TimeoutError:
        return Problem("The server takes too long to say how to sign in. Try again later.")


def _authorization_url(server: AuthorizationServer, plan: Plan, client: Client, state: str) -> str:
    challenge = hashlib.sha256(plan.verifier.encode()).digest()
    query = {
        "response_type": "code",
        "client_id": client.id,
        "redirect_uri": plan.redirect_uri,
        "state": state,
        "code_challenge": base64.urlsafe_b64encode(challenge).decode().rstrip("="),
        "code_challenge_method": "S256",
        "resource": plan.resource,
    }
    if plan.scope:
        query["scope"] = plan.scope
    if "offline_access" in plan.scope.split():
        # Without this the other one is ignored: OpenID Connect Core, section 11.
        query["prompt"] = "consent"
    joint = "&" if "?" in server.authorization_endpoint else "?"
    return f"{server.authorization_endpoint}{joint}{urlencode(query)}"
