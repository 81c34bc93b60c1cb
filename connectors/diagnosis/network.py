"""The way to a server below MCP: its name, its addresses, TCP, TLS, and where HTTP leads.

Everything is dialled through the guard that sessions dial through.
"""

from __future__ import annotations

import ssl
from collections.abc import Awaitable
from datetime import UTC, datetime
from typing import TypeVar

import httpcore2
import httpx2

from connectors.diagnosis.record import SLACK, Record
from connectors.diagnosis.values import Finding, Fixer
from connectors.oauth.discovery import PROBE, PROBE_HEADERS
from connectors.oauth.http import Answer, send
from connectors.sessions import Fault, FaultKind, Target
from connectors.sessions.endpoint import ssl_context_for
from connectors.sessions.faults import WireFault, of_transport
from connectors.sessions.guard import GuardedBackend, IsAllowed, addresses_of, is_reachable
from connectors.sessions.http_rules import endpoint_of, followed, headers_of
from connectors.sessions.outward import outward

T = TypeVar("T")

STEP_SECONDS = 5
HTTP = "First answer (HTTP)"
CERTIFICATE_DAYS = 14
"""A certificate that ends sooner gets a note."""


async def walk_network(record: Record, target: Target, is_allowed: IsAllowed) -> bool:
    """Walk from the address to an HTTP answer; False when the way ended before it."""
    try:
        url = endpoint_of(target.url)
    except WireFault as error:
        advice = Finding("An address begins with https://, or with http://.", _addressee(record))
        record.failed("Address", error.fault, None, advice)
        return False
    host, port = _place(url)
    return (
        await _name(record, host, port)
        and await _allowed(record, host, port, is_allowed)
        and await _sockets(record, target, url, is_allowed)
        and await _http(record, target, url, is_allowed)
    )


def _place(url: httpx2.URL) -> tuple[str, int]:
    return url.raw_host.decode("ascii"), url.port or (443 if url.scheme == "https" else 80)


async def _name(record: Record, host: str, port: int) -> bool:
    found, seconds = await record.timed(_as_fault(addresses_of(host, port)), STEP_SECONDS)
    if isinstance(found, Fault):
        advice = Finding(
            f"Look for a typing error in {host}. A name of a private network is known only where "
            "that network's own resolver is asked.",
            _addressee(record),
        )
        record.failed("Name (DNS)", found, seconds, advice)
        return False
    words = f"{host} is {', '.join(found[:8])}."
    if found == [host]:
        words = f"{host} is an address: there is no name to look up."
    record.saw("Name (DNS)", words, seconds)
    return True


async def _allowed(record: Record, host: str, port: int, is_allowed: IsAllowed) -> bool:
    """By the guard's own rule. It is applied again to the address that is dialled."""
    found = await _as_fault(addresses_of(host, port))
    addresses = [] if isinstance(found, Fault) else found
    refused = [text for text in addresses if not is_reachable(text, is_allowed)]
    if len(refused) == len(addresses):
        words = f"Connectors may not reach {', '.join(refused[:8]) or host}."
        record.failed("Address allowed", Fault(FaultKind.BLOCKED, words))
        return False
    also = f" Not used, because it is not allowed: {', '.join(refused[:8])}." if refused else ""
    record.saw("Address allowed", f"Connectors may reach it.{also}")
    return True


async def _sockets(record: Record, target: Target, url: httpx2.URL, is_allowed: IsAllowed) -> bool:
    host, port = _place(url)
    dialling = GuardedBackend(is_allowed).connect_tcp(host, port, STEP_SECONDS)
    stream, seconds = await record.timed(_as_fault(dialling), STEP_SECONDS + SLACK)
    if isinstance(stream, Fault):
        name = "Outgoing proxy" if stream.kind is FaultKind.PROXY else "Connection (TCP)"
        record.failed(name, stream, seconds)
        return False
    through = ""
    if outward().proxy is not None:
        record.saw("Outgoing proxy", "It is there, and connects to this address.", seconds)
        through = " Reached through the outgoing proxy."
    record.saw("Connection (TCP)", f"Port {port} accepts connections.{through}", seconds)
    try:
        return url.scheme == "http" or await _tls(record, stream, host, target.ca_bundle)
    finally:
        await stream.aclose()


async def _tls(
    record: Record, stream: httpcore2.AsyncNetworkStream, host: str, ca_bundle: str
) -> bool:
    wrapping = stream.start_tls(ssl_context_for(ca_bundle), host, STEP_SECONDS)
    secured, seconds = await record.timed(_as_fault(wrapping), STEP_SECONDS)
    if isinstance(secured, Fault):
        record.failed("Encryption (TLS)", secured, seconds, *_about_tls(record, secured))
        return False
    words, findings = _certificate(secured.get_extra_info("ssl_object"))
    record.saw("Encryption (TLS)", words, seconds, findings)
    await secured.aclose()
    return True


def _about_tls(record: Record, fault: Fault) -> list[Finding]:
    """OpenSSL's reason is in the words; this is what it means."""
    said = fault.message
    if "has expired" in said:
        return [Finding("The certificate is over: renew it.")]
    if "not yet valid" in said:
        return [Finding("The certificate begins later, or a clock is wrong.")]
    if "mismatch" in said:
        name = "The certificate is for another name than the address has: use that name in it"
        return [
            Finding(f"{name}.", _addressee(record)),
            Finding("Or get a certificate for this one."),
        ]
    if "certificate" in said:
        where = "under Configure, as CA bundle" if record.has_connector else "with --ca-bundle"
        return [
            Finding(
                "The certificate is from an authority that is not known here. If that is one of "
                f"your own, give its certificate {where}.",
                _addressee(record),
            ),
            Finding("Otherwise use one of a public authority, with the certificates between."),
        ]
    plain = "The port may speak plain http: then the address begins with http://."
    return [Finding(plain, _addressee(record)), Finding("Or the server's TLS is broken.")]


def _addressee(record: Record) -> Fixer:
    """Who can correct the address."""
    return Fixer.ADMIN if record.has_connector else Fixer.AUTHOR


def _certificate(secured: ssl.SSLObject) -> tuple[str, list[Finding]]:
    certificate = secured.getpeercert() or {}
    ends_at = datetime.fromtimestamp(ssl.cert_time_to_seconds(str(certificate["notAfter"])), UTC)
    days = (ends_at - datetime.now(UTC)).days
    words = f"{secured.version()}. The certificate is valid until {ends_at:%d %B %Y} ({days} days)."
    if days >= CERTIFICATE_DAYS:
        return words, []
    return words, [Finding("The certificate ends soon: renew it.", is_failure=False)]


async def _http(record: Record, target: Target, url: httpx2.URL, is_allowed: IsAllowed) -> bool:
    """Whether the address itself answers. What it answers is for the next steps."""
    try:
        headers = headers_of(target, url) | PROBE_HEADERS
        if target.authorization is not None:
            credential = await target.authorization.value()
            if isinstance(credential, Fault):
                record.failed("Credential", credential)
                return False
            record.peer.hide(credential)
            headers["authorization"] = credential
    except WireFault as error:
        record.failed(HTTP, error.fault)
        return False
    asking = send(
        "POST",
        str(url),
        headers=headers,
        body=PROBE,
        is_allowed=is_allowed,
        ca_bundle=target.ca_bundle,
    )
    answer, seconds = await record.timed(asking, STEP_SECONDS * 2)
    if isinstance(answer, Fault):
        found = [record.advice_on(answer)]
        if url.scheme == "http" and answer.kind is FaultKind.CLOSED:
            secure = "Or the port speaks https: then the address begins with https://."
            found.append(Finding(secure, _addressee(record)))
        record.failed(HTTP, answer, seconds, *found)
        return False
    if answer.location is None or not 300 <= answer.status < 400:
        words = f"A web server answers: HTTP {answer.status}, without a redirect."
        if answer.status >= 300:
            words += " Any answer will do here: MCP begins with the next step."
        record.saw(HTTP, words, seconds)
        return True
    return _redirect(record, answer, url, seconds, is_allowed)


def _redirect(
    record: Record, answer: Answer, url: httpx2.URL, seconds: float, is_allowed: IsAllowed
) -> bool:
    """What the sessions make of a redirect."""
    try:
        there = followed(answer.status, url, answer.location or "", is_allowed)
    except WireFault as error:
        inside = Finding("Nobody is led to such an address from outside: correct the redirect.")
        instead = [inside] if error.fault.kind is FaultKind.BLOCKED else []
        record.failed(HTTP, error.fault, seconds, *instead)
        return False
    words = f"HTTP {answer.status} to {there.path} on the same server, which is followed."
    advice = Finding(
        "Use that address: it saves a round trip each time.", _addressee(record), is_failure=False
    )
    record.saw(HTTP, words, seconds, [advice])
    return True


async def _as_fault(work: Awaitable[T]) -> T | Fault:
    try:
        return await work
    except (httpcore2.NetworkError, httpcore2.TimeoutException) as error:
        return of_transport(error)
