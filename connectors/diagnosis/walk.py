"""The walk itself: the network, the era, the sign-in, and then all that the host asks a server.

Async, values in and values out, over sessions of its own, so that nothing that is already open
hides what a new connection meets.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from connectors.diagnosis.asking import Inspection
from connectors.diagnosis.network import walk_network
from connectors.diagnosis.record import SLACK, Record, Terms
from connectors.diagnosis.values import Diagnosis, Finding, Fixer
from connectors.oauth.discovery import TAKES_TOKEN, Found, discover
from connectors.oauth.metadata import Problem
from connectors.protocol.identifiers import MODERN_REVISION
from connectors.sessions import Connected, Fault, FaultKind, Sessions, Target
from connectors.sessions.faults import Peer

_REFUSED = frozenset({FaultKind.UNAUTHORIZED, FaultKind.FORBIDDEN})


async def walk(subject: str, target: Target, terms: Terms, also: Iterable[str] = ()) -> Diagnosis:
    """Walk the whole way. also: secrets to keep out of all words, besides the target's own."""
    target = replace(target, discovery=None)
    peer = Peer(target, also)
    record = Record(peer, terms)
    is_http = target.command is None
    if not is_http or await walk_network(record, target, terms.is_allowed):
        sessions = Sessions(terms.limits, claims=terms.claims, is_allowed=terms.is_allowed)
        try:
            await _walk_mcp(record, sessions, target, terms)
        finally:
            await sessions.close()
    return Diagnosis(subject, tuple(record.steps), record.is_reached)


async def _walk_mcp(record: Record, sessions: Sessions, target: Target, terms: Terms) -> None:
    connected = await _connect(record, sessions, target, terms)
    if connected is None:
        return
    record.is_reached = True
    await Inspection(record, sessions, target, terms, connected).make()
    if not terms.is_both_eras or connected.revision != MODERN_REVISION:
        return
    older = replace(target, connector_id=target.connector_id + 1, is_of_2025=True)
    again, seconds = await record.timed(
        sessions.connect(older, terms.limits.connect_seconds), terms.limits.connect_seconds + SLACK
    )
    if isinstance(again, Fault):
        record.saw(
            "As a host of 2025",
            f"Not served: {again.message}",
            seconds,
            [Finding("Hosts that speak 2025-11-25 only cannot use it.", None, is_failure=False)],
        )
        return
    record.saw("As a host of 2025", f"The server speaks {again.revision} too.", seconds)
    await Inspection(record, sessions, older, terms, again, newer=connected).make()


async def _connect(
    record: Record, sessions: Sessions, target: Target, terms: Terms
) -> Connected | None:
    outcome, seconds = await record.timed(
        sessions.connect(target, terms.limits.connect_seconds), terms.limits.connect_seconds + SLACK
    )
    if isinstance(outcome, Connected):
        named = outcome.server_name or "The server, which gives no name,"
        version = f" {outcome.server_version}" if outcome.server_version else ""
        record.saw("Protocol", f"{named}{version} speaks {outcome.revision}.", seconds)
        has_credential = bool(target.headers) or target.authorization is not None
        words = (
            "The server accepts what is sent." if has_credential else "The server asks for none."
        )
        record.saw("Credential", words)
        return outcome
    if outcome.kind not in _REFUSED:
        record.failed("Protocol", outcome, seconds)
        return None
    # Not a word about the era comes from a server that refuses to talk (D-F17).
    record.skipped("Protocol", "Not known before the server accepts a credential.")
    about = await _about_sign_in(record, outcome, target, terms)
    record.failed("Credential", outcome, seconds, *about)
    return None


async def _about_sign_in(
    record: Record, fault: Fault, target: Target, terms: Terms
) -> list[Finding]:
    """How to get into a server that refuses us: what it says of that itself."""
    if fault.kind is not FaultKind.UNAUTHORIZED or target.command is not None:
        return [record.advice_on(fault)]
    headers = {name: value for name, value in target.headers if name.lower() != "authorization"}
    found, _ = await record.timed(
        discover(target.url, headers, terms.is_allowed, target.ca_bundle), 8
    )
    if isinstance(found, Fault):
        return [record.advice_on(fault)]
    host = found.server.host if isinstance(found, Found) else None
    about = [_way_in(record, host, has_sent=bool(target.headers) or bool(target.authorization))]
    if isinstance(found, Problem):
        said = found.message.removesuffix(TAKES_TOKEN)
        about.append(Finding(f"No sign-in is possible: {said}", is_failure=False))
    return about


def _way_in(record: Record, host: str | None, *, has_sent: bool) -> Finding:
    """host: of who signs people in to the server; None where nobody does."""
    refused = "What is sent is not accepted. " if has_sent else ""
    if not record.has_connector:
        also = f" People get one by signing in at {host}." if host else ""
        return Finding(f"{refused}Give a token with --bearer, or a header with --header.{also}")
    if host is None:
        return Finding(f"{refused}Enter a token or a header under Configure.", Fixer.ADMIN)
    again = " again" if has_sent else ""
    return Finding(f"{refused}Sign in{again} on the connector's page, at {host}.", Fixer.ADMIN)
