"""Whether open pages may stay open: asked for all that want to know at the same time, at once.

A thousand pages open after a restart and tick each half minute. One by one that is thousands of
statements and turns of threads; together it is four statements for each two hundred.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import IntEnum
from itertools import chain
from typing import Any, Generic, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.models import Session
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from workspaces.actions import keep_watched
from workspaces.models import Membership, User, Workspace

logger = logging.getLogger(__name__)

AT_ONCE = 200
"""Of how many pages one look takes care at most, so that the first of many do not wait long."""

Key = TypeVar("Key")
Answer = TypeVar("Answer")


class Page(NamedTuple):
    """What an open page shows of itself: untrusted, but that the slug is of a slug's letters."""

    session_key: str
    slug: str


@dataclass(frozen=True, slots=True)
class Place:
    """The workspace of a page that may be open."""

    workspace_id: int
    version: int


class Refusal(IntEnum):
    """Why a page may not stay open: the code that its socket is closed with."""

    SIGNED_OUT = 4401
    NO_ACCESS = 4403


class Together(Generic[Key, Answer]):
    """Answers those who ask the same at the same time together, in a thread, at most so many.

    Who comes while others are answered is answered next; who comes alone waits for nobody.
    """

    def __init__(self, answers: Callable[[Collection[Key]], Mapping[Key, Answer]]) -> None:
        self._answers = answers
        self._rounds: WeakKeyDictionary[asyncio.AbstractEventLoop, _Round[Key, Answer]]
        self._rounds = WeakKeyDictionary()

    async def ask(self, key: Key) -> Answer | None:
        """The answer; None where there is none, and when nothing could be asked, which is logged
        once for all."""
        loop = asyncio.get_running_loop()
        if loop not in self._rounds:
            self._rounds[loop] = _Round(self._answers)
        return await self._rounds[loop].ask(key)


class _Round(Generic[Key, Answer]):
    """What is being asked on one event loop."""

    def __init__(self, answers: Callable[[Collection[Key]], Mapping[Key, Answer]]) -> None:
        self._ask_all = database_sync_to_async(answers)
        self._waiting: list[tuple[Key, asyncio.Future[Answer | None]]] = []
        self._asking: asyncio.Task[None] | None = None

    async def ask(self, key: Key) -> Answer | None:
        answered: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()
        self._waiting.append((key, answered))
        if self._asking is None:
            self._asking = asyncio.create_task(self._main())
        return await answered

    async def _main(self) -> None:
        """Ask until nobody waits: no task stays when no page is open."""
        try:
            while self._waiting:
                asked, self._waiting = self._waiting[:AT_ONCE], self._waiting[AT_ONCE:]
                answers = await self._all({key for key, _ in asked})
                for key, answered in asked:
                    # Who left meanwhile has cancelled theirs.
                    if not answered.done():
                        answered.set_result(answers.get(key))
        finally:
            self._asking = None

    async def _all(self, keys: Collection[Key]) -> Mapping[Key, Answer]:
        try:
            return await self._ask_all(keys)
        except Exception:
            logger.exception("Open pages could not be looked after", extra={"pages": len(keys)})
            return {}


def look(pages: Collection[Page]) -> dict[Page, Place | Refusal]:
    """Where each page is, whose workspace is kept watched; or why it may not stay open."""
    people = _people({page.session_key for page in pages})
    slugs = {page.slug for page in pages}
    workspaces = {each.slug: each for each in Workspace.objects.filter(slug__in=slugs)}
    members = set(
        Membership.objects.filter(
            user__in={user.pk for user in people.values()}, workspace__in=workspaces.values()
        ).values_list("user_id", "workspace_id")
    )
    found: dict[Page, Place | Refusal] = {}
    watched = set()
    for page in pages:
        user, workspace = people.get(page.session_key), workspaces.get(page.slug)
        if user is None:
            found[page] = Refusal.SIGNED_OUT
        elif workspace is None or (user.pk, workspace.pk) not in members:
            found[page] = Refusal.NO_ACCESS
        else:
            found[page] = Place(workspace.pk, workspace.panel_version)
            watched.add(workspace)
    for workspace in watched:
        keep_watched(workspace)
    return found


def versions(workspace_ids: Collection[int]) -> dict[int, int]:
    """The versions of the panels of those workspaces that there still are."""
    found = Workspace.objects.filter(pk__in=workspace_ids)
    return dict(found.values_list("pk", "panel_version"))


def _people(session_keys: Collection[str]) -> dict[str, User]:
    """Who is signed in by each session.

    As `django.contrib.auth.get_user` has it, but for many, and without a change of the session: a
    socket cannot hand a browser the cookie of a new one.
    """
    # A cookie may hold what a database refuses, and one refusal would be everybody's.
    keys = {key for key in session_keys if key.isascii() and key.isalnum()}
    living = Session.objects.filter(session_key__in=keys, expire_date__gt=timezone.now())
    sessions = {each.session_key: each.get_decoded() for each in living}
    ids = {data[SESSION_KEY] for data in sessions.values() if SESSION_KEY in data}
    users = {str(user.pk): user for user in User.objects.filter(pk__in=ids, is_active=True)}
    signed_in = (
        (key, users.get(data.get(SESSION_KEY, "")), data) for key, data in sessions.items()
    )
    return {key: user for key, user, data in signed_in if user and _holds(data, user)}


def _holds(session: Mapping[str, Any], user: User) -> bool:
    """Whether a session was begun with the password that the person still has."""
    began_with = session.get(HASH_SESSION_KEY) or ""
    hashes = chain([user.get_session_auth_hash()], user.get_session_auth_fallback_hash())
    return session.get(BACKEND_SESSION_KEY) in settings.AUTHENTICATION_BACKENDS and any(
        constant_time_compare(began_with, each) for each in hashes
    )
