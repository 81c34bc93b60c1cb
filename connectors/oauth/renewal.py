"""The access token of a connection: the current one for each request, renewed once for everybody.

Async, on the background loop. Who renews is decided by the database, so that the processes
of a host never spend the same refresh token twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import ParamSpec, TypeVar
from uuid import uuid4

from asgiref.sync import sync_to_async
from django.db import close_old_connections
from django.utils import timezone

from connectors.oauth import grants
from connectors.oauth.grants import Held
from connectors.oauth.http import Answer, send
from connectors.oauth.metadata import IsAllowed, host_of
from connectors.oauth.tokens import Refusal, Tokens, parse_answer, token_request
from connectors.sessions import Fault, FaultKind

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

POLL_SECONDS = 0.15
WAIT_SECONDS = grants.LEASE_SECONDS + 5
"""How long to wait for another process's renewal: then its lease is over, and ours can begin."""

PAUSE_SECONDS = 10
"""After a renewal that failed and may succeed later, before the next one is tried."""

MAX_PAUSE_SECONDS = 300

SIGN_IN_AGAIN = "The sign-in to this server is over. Sign in again."
REFUSED_AFTER_RENEWAL = (
    "The server refuses the access that its own sign-in page gave a moment ago. Sign in again; if "
    "that does not help, ask who runs the server."
)
REPLACED = (
    "The server may have replaced the key while this host stopped or could not hear it: "
    "sign in again."
)

_under_way: set[asyncio.Task[Held | Fault]] = set()
"""The loop itself keeps no task alive."""


class CurrentToken:
    """The Authorization header of one connection. See `sessions.values.Authorization`."""

    def __init__(self, held: Held, is_allowed: IsAllowed, ca_bundle: str = "") -> None:
        self._held, self._is_allowed, self._ca_bundle = held, is_allowed, ca_bundle
        self._renewal: asyncio.Task[Held | Fault] | None = None
        self._fault: Fault | None = None
        self._paused_until: datetime | None = None

    async def value(self, refused: str | None = None) -> str | Fault:
        """The header to send. refused: the one that the server has just refused.

        A `Fault` that is not `unauthorized` passes: the grant is as good as before.
        """
        now = timezone.now()
        is_refused = refused == self._held.authorization
        if not is_refused and not self._held.is_due(now):
            return self._held.authorization
        outcome = self._pausing(now) or await self._renewed(is_refused)
        if isinstance(outcome, Held):
            return outcome.authorization
        is_usable = not is_refused and not self._held.is_expired(now)
        if is_usable and outcome.kind is not FaultKind.UNAUTHORIZED:
            return self._held.authorization
        return outcome

    async def lacks(self, scope: str) -> None:
        """The server wants a scope that the grant does not have."""
        if scope and scope != self._held.missing_scope:
            await _in_thread(grants.note_missing_scope, self._held, scope)

    def _pausing(self, now: datetime) -> Fault | None:
        is_pausing = self._paused_until is not None and now < self._paused_until
        return self._fault if is_pausing else None

    async def _renewed(self, is_refused: bool) -> Held | Fault:
        # One task for all who ask. It outlives each of them: a server that has replaced the
        # tokens must be heard to the end, whoever stops waiting.
        if self._renewal is None or self._renewal.done():
            self._renewal = asyncio.create_task(self._renew(is_refused))
            _under_way.add(self._renewal)
            self._renewal.add_done_callback(_under_way.discard)
        return await asyncio.shield(self._renewal)

    async def _renew(self, is_refused: bool) -> Held | Fault:
        try:
            outcome = await renew(
                self._held,
                is_refused=is_refused,
                is_allowed=self._is_allowed,
                ca_bundle=self._ca_bundle,
            )
        except Exception:
            logger.exception("A sign-in could not be renewed")
            outcome = Fault(FaultKind.CLOSED, "The host failed to renew the sign-in.")
        if isinstance(outcome, Held):
            self._held = outcome
        else:
            pause = max(PAUSE_SECONDS, min(outcome.retry_after_seconds or 0, MAX_PAUSE_SECONDS))
            self._fault, self._paused_until = outcome, timezone.now() + timedelta(seconds=pause)
        return outcome


async def renew(
    seen: Held, *, is_refused: bool, is_allowed: IsAllowed, ca_bundle: str = ""
) -> Held | Fault:
    """Tokens that are newer than those seen: by a renewal of our own or another process's.

    is_refused: the server refused those seen. Without that they are renewed because they are due.
    """
    owner = uuid4().hex
    deadline = asyncio.get_running_loop().time() + WAIT_SECONDS
    while True:
        now = timezone.now()
        held = await _in_thread(grants.current, seen)
        if held is None:
            return Fault(FaultKind.UNAUTHORIZED, SIGN_IN_AGAIN)
        is_still_refused = is_refused and held.generation == seen.generation
        if not is_still_refused and not held.is_due(now):
            return held
        if held.refresh_token is None or (is_still_refused and held.is_just_renewed(now)):
            words = REFUSED_AFTER_RENEWAL if held.refresh_token else SIGN_IN_AGAIN
            return await _refused(held, words)
        if await _in_thread(grants.claim, held, owner, now):
            return await _renew_as(owner, held, is_allowed, ca_bundle)
        if asyncio.get_running_loop().time() > deadline:
            return Fault(FaultKind.TIMEOUT, "The sign-in is being renewed and takes too long.")
        await asyncio.sleep(POLL_SECONDS)


async def _renew_as(owner: str, held: Held, is_allowed: IsAllowed, ca_bundle: str) -> Held | Fault:
    """Spend the refresh token. The lease is ours."""
    form = {"grant_type": "refresh_token", "refresh_token": held.refresh_token or ""}
    headers, body = token_request(held.client, {**form, "resource": held.resource})
    answer = await send(
        "POST",
        held.token_endpoint,
        headers=headers,
        body=body,
        is_allowed=is_allowed,
        ca_bundle=ca_bundle,
    )
    now = timezone.now()
    said = parse_answer(answer.value, now) if isinstance(answer, Answer) else None
    if isinstance(said, Tokens) and isinstance(answer, Answer) and answer.status < 300:
        await _in_thread(grants.keep, held, said, now)
        newest = await _in_thread(grants.current, held)
        return newest or Fault(FaultKind.UNAUTHORIZED, SIGN_IN_AGAIN)
    host = host_of(held.token_endpoint)
    if isinstance(said, Refusal) and said.is_final:
        words = REPLACED if held.is_unsettled else f"{host} ended the sign-in. Sign in again."
        return await _refused(held, words)
    await _in_thread(grants.release, held, owner, is_settled=_is_settled(answer))
    return _passing(answer, host)


async def _refused(held: Held, words: str) -> Held | Fault:
    await _in_thread(grants.refuse, held, words, timezone.now())
    # Somebody may have signed in meanwhile, and then nothing was refused.
    newest = await _in_thread(grants.current, held)
    return newest or Fault(FaultKind.UNAUTHORIZED, words, http_status=401)


def _is_settled(answer: Answer | Fault) -> bool:
    """Whether the server certainly did not replace the tokens."""
    if isinstance(answer, Fault):
        return answer.kind in (FaultKind.UNREACHABLE, FaultKind.BLOCKED, FaultKind.PROXY)
    return answer.status >= 300


def _passing(answer: Answer | Fault, host: str) -> Fault:
    if isinstance(answer, Fault):
        return Fault(answer.kind, f"The sign-in cannot be renewed at {host}: {answer.message}")
    return Fault(
        FaultKind.HTTP,
        f"The sign-in cannot be renewed now: {host} answers HTTP {answer.status}.",
        http_status=answer.status,
        retry_after_seconds=answer.retry_after_seconds,
    )


async def _in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a piece of database work off the loop, and give the connection back after it."""

    def bounded() -> T:
        close_old_connections()
        try:
            return work(*args, **kwargs)
        finally:
            close_old_connections()

    return await sync_to_async(bounded, thread_sensitive=False)()
