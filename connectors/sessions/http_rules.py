"""What HTTP statuses, headers and redirects mean to a host. Pure."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping

import httpcore2
import httpx2
from mcp.shared.exceptions import MCPError
from mcp_types import METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION

from connectors.protocol.challenges import missing_scope
from connectors.sessions.faults import Peer, WireFault, fault, retry_after_seconds
from connectors.sessions.guard import IsAllowed, is_reachable
from connectors.sessions.values import Fault, FaultKind, Target
from connectors.sessions.wire import DISCOVER, HANDSHAKE, Exchange

_OURS = frozenset(
    {"accept", "accept-encoding", "connection", "content-length", "content-type", "host"}
    | {"mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id", "transfer-encoding"}
)
_UNDECIDED = frozenset({401, 402, 403, 407, 408, 421, 423, 425, 429, 451})
"""Statuses below 500 that say nothing about the era of the server behind them (D-F17)."""

_SESSION_LOST = re.compile(
    r"\b(no|no valid|invalid|unknown|expired|missing)\b.{0,20}\bsession\b"
    r"|\bsession\b.{0,40}\b(not found|not exist|expired|invalid|unknown|terminated|closed)\b"
    r"|\bsession\b.{0,20}\brequired\b"
    r"|\bnot initialized\b",
    re.IGNORECASE | re.DOTALL,
)


def endpoint_of(url: str) -> httpx2.URL:
    """The address of a connector. Raises: WireFault when it is no http(s) address."""
    try:
        parsed = httpx2.URL(url)
    except (httpx2.InvalidURL, ValueError):
        parsed = httpx2.URL("")
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise fault(FaultKind.PROTOCOL, "The connector's address is no http or https address.")
    return parsed


def headers_of(target: Target, url: httpx2.URL) -> dict[str, str]:
    """The headers of every request. What the protocol needs is not a connector's to set."""
    headers = {name.lower(): value for name, value in target.headers if name.lower() not in _OURS}
    if url.userinfo:
        headers.setdefault("authorization", f"Basic {base64.b64encode(url.userinfo).decode()}")
    return headers | {
        "host": url.netloc.decode("ascii"),
        "accept": "application/json, text/event-stream",
        "accept-encoding": "gzip",
        "content-type": "application/json",
        # Some gateways refuse requests that do not name their program.
        "user-agent": "workspace-overview",
    }


def lines(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in headers.items()]


def core_url(url: httpx2.URL) -> httpcore2.URL:
    return httpcore2.URL(
        scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
    )


def header_of(response: httpcore2.Response, name: bytes) -> str | None:
    for key, value in response.headers:
        if key.lower() == name:
            return value.decode("latin-1").strip()
    return None


def media_type_of(response: httpcore2.Response) -> str:
    return (header_of(response, b"content-type") or "").partition(";")[0].strip().lower()


def location_of(response: httpcore2.Response) -> str | None:
    """Where a redirect leads; None when the response is none."""
    if response.status not in (301, 302, 303, 307, 308):
        return None
    return header_of(response, b"location")


def followed(status: int, url: httpx2.URL, location: str, is_allowed: IsAllowed) -> httpx2.URL:
    """The address to repeat a request at, method, body and credentials included.

    Only one origin ever sees them: the one that the connector names (D12).
    Raises: WireFault, with where it would have gone.
    """
    try:
        there = url.join(location)
    except (httpx2.InvalidURL, ValueError):
        raise fault(FaultKind.REDIRECT, "The server redirects to no valid address.") from None
    try:
        is_blocked = not is_reachable(there.host, is_allowed)
    except ValueError:
        is_blocked = False  # A name. It is not dialled here, so it is not looked up either.
    if is_blocked:
        raise fault(
            FaultKind.BLOCKED,
            f"The server redirects to {there.host}, an address that connectors may not reach.",
        )
    is_same_origin = (there.scheme, there.host, there.port) == (url.scheme, url.host, url.port)
    if status in (307, 308) and is_same_origin and there.userinfo in (b"", url.userinfo):
        return there
    origin = f"{there.scheme}://{there.netloc.decode('ascii', 'replace')}"[:120]
    raise fault(
        FaultKind.REDIRECT,
        f"The server redirects to {origin}, which is not followed. "
        "If that is the intended server, correct the connector's address.",
    )


def refusal_of(
    response: httpcore2.Response, error: MCPError | None, exchange: Exchange, peer: Peer
) -> Exception:
    """What a JSON-RPC error, or a status of 400 or more, means for a request.

    An `MCPError` tells the SDK, which probes for the era, that an old server answered; a gateway
    that is down, busy or closed to us must never look like one (D-F17).
    """
    status = response.status
    if (kind := _KINDS.get(status)) is not None:
        return WireFault(_http_fault(response, kind, peer))
    if error is not None and error.error.code == METHOD_NOT_FOUND:
        return error
    if exchange.method in HANDSHAKE:
        is_verdict = status < 500 and status not in _UNDECIDED
        if is_verdict and (error is not None or exchange.method == DISCOVER):
            return error or MCPError(METHOD_NOT_FOUND, f"HTTP {status}")
    elif status < 500 and is_session_lost(status, error, exchange):
        return fault(FaultKind.SESSION_LOST, "The server ended the session.")
    elif error is not None and status <= 500:
        return error
    return WireFault(_http_fault(response, FaultKind.HTTP, peer))


def is_session_lost(status: int, error: MCPError | None, exchange: Exchange) -> bool:
    """Whether the server no longer knows this connection, and a new handshake may help.

    Never told by a JSON-RPC code alone: servers and SDKs use the same ones for other things.
    """
    if error is not None:
        if error.error.code == UNSUPPORTED_PROTOCOL_VERSION:
            return True
        says_so = _SESSION_LOST.search(error.error.message[:500]) is not None
        is_status = status in (400, 404, 410) or (status < 300 and exchange.had_session)
        # A 404 to a session id means it by itself: 2025-11-25, "Session Management", 3.
        return (says_so and is_status) or (exchange.had_session and status == 404)
    if exchange.is_modern:
        # No modern server says this without a JSON-RPC error: another one took its place.
        return status in (400, 404, 405, 406, 415)
    return exchange.had_session and status in (400, 404, 410)


_KINDS = {
    401: FaultKind.UNAUTHORIZED,
    403: FaultKind.FORBIDDEN,
    429: FaultKind.RATE_LIMITED,
}
_WORDS = {
    FaultKind.UNAUTHORIZED: "The server does not accept the credential",
    FaultKind.FORBIDDEN: "The server forbids this to the credential",
    FaultKind.RATE_LIMITED: "The server asks for fewer requests",
    FaultKind.HTTP: "The server cannot answer",
}


def _http_fault(response: httpcore2.Response, kind: FaultKind, peer: Peer) -> Fault:
    challenge = header_of(response, b"www-authenticate")
    words, scope = _WORDS[kind], missing_scope(challenge)
    if kind is FaultKind.UNAUTHORIZED and peer.is_given_nothing:
        words = "The server wants a sign-in"
    if kind is FaultKind.FORBIDDEN and scope is not None:
        named = peer.text(scope, 100) or "one that it does not name"
        words = f"The server wants a permission that the credential lacks: {named}"
    return Fault(
        kind,
        f"{words} (HTTP {response.status}).",
        http_status=response.status,
        retry_after_seconds=retry_after_seconds(header_of(response, b"retry-after")),
        challenge=peer.text(challenge, 1000) if challenge else None,
    )
