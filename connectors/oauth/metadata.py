"""What protected resources and authorization servers say of themselves, read without trust.

Pure. Source: RFC 9728, RFC 8414, OAuth 2.1; MCP 2026-07-28, "Authorization".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import urlsplit

from mcp.client.auth.utils import issuers_match
from mcp.shared.auth_utils import check_resource_allowed

from connectors.inputs import clean_name
from connectors.protocol.challenges import clean_scope
from connectors.protocol.text import shorten

IsAllowed = Callable[[IPv4Address | IPv6Address], bool]

MAX_URL_CHARS = 2048
_VISIBLE = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a sign-in cannot go on, in words that a person can act on. Never holds a secret."""

    message: str


@dataclass(frozen=True, slots=True)
class Resource:
    """A protected resource: its identifier exactly as it gives it, and who signs people in."""

    identifier: str
    issuers: tuple[str, ...]
    scope: str


@dataclass(frozen=True, slots=True)
class AuthorizationServer:
    """An authorization server that does all that a sign-in needs. Its addresses are secure."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    registration_endpoint: str | None
    takes_documents: bool
    """Whether a client id may be the address of a document that describes the client."""
    names_itself: bool
    """Whether each of its answers carries its issuer (RFC 9207)."""
    methods: tuple[str, ...]
    """How clients may authenticate at the token endpoint."""
    offers_offline_access: bool

    @property
    def host(self) -> str:
        return host_of(self.issuer)


def words_of(text: object, max_chars: int = 200) -> str:
    """A stranger's text for a message: one short line that reorders nothing; "" for no text."""
    return shorten(clean_name(text[: 4 * max_chars]), max_chars) if isinstance(text, str) else ""


def host_of(url: str) -> str:
    return urlsplit(url).netloc


def parse_resource(value: object, url: str) -> Resource | Problem | None:
    """Read protected-resource metadata. url: the connector's, which it must be about.

    None for anything else than such metadata.
    """
    if not isinstance(value, dict):
        return None
    identifier, issuers = value.get("resource"), value.get("authorization_servers")
    if not isinstance(identifier, str) or not isinstance(issuers, list):
        return None
    named = tuple(issuer for issuer in issuers if isinstance(issuer, str) and issuer)
    if not named:
        return None
    # Otherwise a server could have tokens made out for another one, and collect them.
    if not _is_about(identifier, url):
        return Problem(
            f"The server's metadata is about another address: {words_of(identifier, 100)}. "
            "If that is the intended server, correct the connector's address."
        )
    scopes = value.get("scopes_supported")
    words = [each for each in scopes if isinstance(each, str)] if isinstance(scopes, list) else []
    return Resource(identifier, named, clean_scope(" ".join(words)))


def _is_about(identifier: str, url: str) -> bool:
    try:
        is_covering = check_resource_allowed(requested_resource=url, configured_resource=identifier)
    except ValueError:
        return False
    return is_covering and len(identifier) <= MAX_URL_CHARS and bool(_VISIBLE.fullmatch(identifier))


def parse_server(
    value: object, issuer: str, is_allowed: IsAllowed
) -> AuthorizationServer | Problem | None:
    """Read authorization-server metadata that was found by an issuer.

    None for anything else than such metadata.
    """
    if not isinstance(value, dict) or not isinstance(value.get("issuer"), str):
        return None
    host = host_of(issuer)
    if not is_same_issuer(value["issuer"], issuer):
        return Problem(
            f"The sign-in page of {host} says that it belongs to {words_of(value['issuer'], 100)}. "
            "It is not used, because that may be an attack. Tell who runs the server."
        )
    authorize, token = value.get("authorization_endpoint"), value.get("token_endpoint")
    if not is_secure(authorize, is_allowed) or not is_secure(token, is_allowed):
        return Problem(
            f"The sign-in page of {host} is not reached over https, so nobody is sent there. "
            "Tell who runs the server."
        )
    if "S256" not in _texts(value.get("code_challenge_methods_supported")):
        return Problem(
            f"The sign-in page of {host} does not offer PKCE with S256, which MCP requires. "
            "Tell who runs the server."
        )
    register = value.get("registration_endpoint")
    return AuthorizationServer(
        issuer=value["issuer"],
        authorization_endpoint=str(authorize),
        token_endpoint=str(token),
        registration_endpoint=register if is_secure(register, is_allowed) else None,
        takes_documents=value.get("client_id_metadata_document_supported") is True,
        names_itself=value.get("authorization_response_iss_parameter_supported") is True,
        # RFC 8414 section 2: the default.
        methods=_texts(value.get("token_endpoint_auth_methods_supported"))
        or ("client_secret_basic",),
        offers_offline_access="offline_access" in _texts(value.get("scopes_supported")),
    )


def is_same_issuer(a: str, b: str) -> bool:
    """Compare as text (RFC 8414 section 3.3), but for the slash of an address without a path."""
    try:
        return issuers_match(a, b)
    except ValueError:
        return False


def _texts(value: object) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def is_secure(url: object, is_allowed: IsAllowed) -> bool:
    """Whether secrets and people may be sent there: over https, or to this machine if allowed."""
    if not isinstance(url, str) or len(url) > MAX_URL_CHARS or not _VISIBLE.fullmatch(url):
        return False
    try:
        parts = urlsplit(url)
        _ = parts.port  # Raises where there is none that can be.
    except ValueError:
        return False
    if not parts.hostname or parts.fragment or "@" in parts.netloc:
        return False
    return parts.scheme == "https" or (
        parts.scheme == "http" and _is_allowed_loopback(parts.hostname, is_allowed)
    )


def _is_allowed_loopback(host: str, is_allowed: IsAllowed) -> bool:
    try:
        address = ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        return False
    return address.is_loopback and is_allowed(address)
