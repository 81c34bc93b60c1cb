"""Talking to a token endpoint: who we are, what is asked, and what its answer means.

Pure. Source: RFC 6749 sections 2.3.1, 5 and 6; RFC 7591 section 3.2.1.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import TypeGuard
from urllib.parse import quote, urlencode

from connectors.oauth.metadata import words_of
from connectors.protocol.challenges import clean_scope

METHODS = ("client_secret_basic", "client_secret_post", "none")
"""How we can authenticate, the best first."""

MAX_TOKEN_CHARS = 16_000
MAX_LIFE_SECONDS = 10 * 366 * 24 * 3600
# Printable ASCII: what a header can carry.
_TOKEN = re.compile(r"[!-~]+")

_REFUSALS = frozenset(
    {
        "invalid_grant",
        "invalid_client",
        "unauthorized_client",
        # GitHub's word for invalid_grant: docs.github.com, "Refreshing user access tokens".
        "bad_refresh_token",
    }
)


@dataclass(frozen=True, slots=True)
class Client:
    """What we are to an authorization server."""

    id: str
    secret: str | None = field(default=None, repr=False)
    method: str = "none"

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Client:
        return cls(**json.loads(text))


@dataclass(frozen=True, slots=True)
class Tokens:
    """What a token endpoint gave. scope: None when it is as asked for."""

    access_token: str = field(repr=False)
    refresh_token: str | None = field(repr=False)
    expires_at: datetime | None
    scope: str | None


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a token endpoint said instead. Both are the peer's words, cut short."""

    code: str
    description: str

    @property
    def is_final(self) -> bool:
        """Whether asking again with the same credential is pointless: a person has to sign in."""
        return self.code in _REFUSALS


def client_of(
    client_id: str, secret: str | None, methods: tuple[str, ...], assigned: object = None
) -> Client | None:
    """A client, with the way to authenticate that was assigned to it, or else the best one.

    None when there is no way that both sides know.
    """
    usable = [each for each in METHODS if (each == "none") == (secret is None)]
    if isinstance(assigned, str) and assigned:
        method = assigned if assigned in usable else None
    else:
        # A public client needs no method; the metadata of many servers leaves "none" out.
        method = next((each for each in usable if each in methods or each == "none"), None)
    return Client(client_id, secret, method) if method else None


def token_request(client: Client, form: Mapping[str, str]) -> tuple[dict[str, str], bytes]:
    """The headers and the body of a token request."""
    headers = {"content-type": "application/x-www-form-urlencoded"}
    fields = {**form, "client_id": client.id}
    if client.method == "client_secret_basic":
        # Encoded before they are joined: RFC 6749 section 2.3.1.
        pair = f"{quote(client.id, safe='')}:{quote(client.secret or '', safe='')}"
        headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    elif client.method == "client_secret_post":
        fields["client_secret"] = client.secret or ""
    return headers, urlencode(fields).encode()


def parse_answer(value: object, now: datetime) -> Tokens | Refusal | None:
    """Read the JSON of a token endpoint, whatever its status; None if it is neither."""
    if not isinstance(value, dict):
        return None
    if isinstance(code := value.get("error"), str):
        return Refusal(words_of(code, 60), words_of(value.get("error_description")))
    access, refresh = value.get("access_token"), value.get("refresh_token")
    kind = value.get("token_type", "bearer")
    if not _is_token(access) or not isinstance(kind, str) or kind.lower() != "bearer":
        return None
    seconds, scope = _seconds_of(value.get("expires_in")), value.get("scope")
    return Tokens(
        access_token=access,
        refresh_token=refresh if _is_token(refresh) else None,
        expires_at=None if seconds is None else now + timedelta(seconds=seconds),
        scope=clean_scope(scope) if isinstance(scope, str) and scope.strip() else None,
    )


def _is_token(value: object) -> TypeGuard[str]:
    return (
        isinstance(value, str)
        and len(value) <= MAX_TOKEN_CHARS
        and _TOKEN.fullmatch(value) is not None
    )


def _seconds_of(value: object) -> float | None:
    """Some servers send the number as text."""
    try:
        seconds = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return min(seconds, MAX_LIFE_SECONDS) if seconds >= 0 else None
