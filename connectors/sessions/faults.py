"""Faults in words for people: peer text is cut short, and our secrets never get into it."""

from __future__ import annotations

import email.utils
import json
import re
import ssl
from collections import deque
from collections.abc import Iterable
from datetime import UTC, datetime
from urllib.parse import parse_qsl, unquote, urlsplit

import httpcore2
from mcp.shared.exceptions import MCPError

from connectors.sessions.guard import BlockedAddress, UnknownName
from connectors.sessions.proxy import ProxyFailed
from connectors.sessions.values import Fault, FaultKind, Target

MAX_PEER_TEXT = 200
MIN_SECRET_CHARS = 4
"""Shorter ones would blot out ordinary words, and are no secrets."""
MAX_RETRY_SECONDS = 86_400.0

_INVISIBLE = re.compile(
    r"[\s\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]+"
)


class WireFault(Exception):
    """A call that has no result, on its way up to where it becomes a value."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def fault(kind: FaultKind, message: str) -> WireFault:
    return WireFault(Fault(kind, message))


class Peer:
    """Text of one server, made fit to be shown. also: more secrets to keep out of it."""

    def __init__(self, target: Target, also: Iterable[str] = ()) -> None:
        more = {each for each in also if len(each) >= MIN_SECRET_CHARS}
        self._fixed = _secrets_of(target) | more
        # Of the credentials that take each other's place the last few; others are of no use.
        self._changing: deque[str] = deque(maxlen=4)
        self._secrets = _longest_first(self._fixed)

    @property
    def is_given_nothing(self) -> bool:
        """Whether no secret is sent there: it cannot have refused one."""
        return not self._secrets

    def hide(self, credential: str) -> None:
        """Keep the value of an Authorization header out of texts as well."""
        secret = credential.partition(" ")[2]
        if len(secret) >= MIN_SECRET_CHARS and secret not in self._changing:
            self._changing.append(secret)
            self._secrets = _longest_first(self._fixed | set(self._changing))

    def text(self, text: object, limit: int = MAX_PEER_TEXT) -> str:
        """One line, at most `limit` characters, without our secrets; "" for anything but text."""
        if not isinstance(text, str):
            return ""
        # Bounded before the work, with room for a secret that straddles the cut.
        line = _INVISIBLE.sub(" ", text[: limit * 50]).strip()
        for secret in self._secrets:
            line = line.replace(secret, "[secret]")
        return line if len(line) <= limit else line[: limit - 1] + "…"

    def data(self, data: object) -> object:
        """The data of a JSON-RPC error, or None when it is large or holds one of our secrets."""
        try:
            text = json.dumps(data, allow_nan=False, ensure_ascii=False)
            text.encode()
        except (ValueError, RecursionError):
            return None
        holds_secret = any(
            json.dumps(secret)[1:-1] in text or secret in text for secret in self._secrets
        )
        return None if holds_secret or len(text) > 10_000 else data

    def remote(self, error: MCPError) -> Fault:
        message = self.text(error.error.message) or "The server answered with an error."
        return Fault(
            FaultKind.REMOTE,
            message,
            code=error.error.code,
            data=self.data(error.error.data),
        )


def _longest_first(secrets: Iterable[str]) -> list[str]:
    """In an order in which one that is part of another one leaves nothing behind."""
    return sorted(secrets, key=len, reverse=True)


def _secrets_of(target: Target) -> set[str]:
    """Header values, also without their scheme; what the address and the environment may hide."""
    values = [value for _, value in (*target.headers, *target.environment)]
    values += [value.partition(" ")[2] for value in values]
    try:
        parts = urlsplit(target.url)
        named = [parts.username or "", parts.password or ""]
        values += [*named, *map(unquote, named)]
        values += [value for _, value in parse_qsl(parts.query)]
    except ValueError:
        pass
    return {value.strip() for value in values if len(value.strip()) >= MIN_SECRET_CHARS}


def of_transport(error: Exception) -> Fault:
    """What a failure below HTTP means. Its own text may hold headers, so it is not used."""
    match error:
        case BlockedAddress():
            return Fault(FaultKind.BLOCKED, str(error))
        case ProxyFailed():
            return Fault(FaultKind.PROXY, f"{error} Whoever runs this host can mend it.")
        case httpcore2.ConnectTimeout() | httpcore2.PoolTimeout():
            return Fault(FaultKind.TIMEOUT, "The server did not accept a connection in time.")
        case httpcore2.TimeoutException():
            return Fault(FaultKind.TIMEOUT, "The server fell silent.")
        case httpcore2.ConnectError():
            return Fault(FaultKind.UNREACHABLE, _why_unreachable(error))
        case httpcore2.LocalProtocolError():
            return Fault(FaultKind.PROTOCOL, "A header of this connector cannot be sent over HTTP.")
        case httpcore2.UnsupportedProtocol():
            return Fault(FaultKind.PROTOCOL, "The address is neither http nor https.")
    return Fault(FaultKind.CLOSED, "The server dropped the connection before it had answered.")


def _why_unreachable(error: BaseException) -> str:
    cause: BaseException | None = error
    while cause is not None:
        match cause:
            case ssl.SSLCertVerificationError():
                words = cause.verify_message.rstrip(".")
                return f"The server's certificate is not valid: {words}."
            case ssl.SSLError():
                return "No secure connection to the server could be set up (TLS)."
            case ConnectionRefusedError():
                return "The server refuses connections."
        cause = cause.__cause__ or cause.__context__
    return str(error) if isinstance(error, UnknownName) else "The server cannot be reached."


def retry_after_seconds(value: str | None) -> float | None:
    """The Retry-After header as seconds from now: a number, or a date. At most a day."""
    if value is None:
        return None
    if value.strip().isdecimal():
        # As many digits as there are can also be more than a number holds.
        return min(float(value), MAX_RETRY_SECONDS)
    try:
        at = email.utils.parsedate_to_datetime(value)
    except ValueError:
        return None
    wait = (at.replace(tzinfo=at.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
    return min(max(0.0, wait), MAX_RETRY_SECONDS)
