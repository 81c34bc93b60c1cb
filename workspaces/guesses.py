"""How many addresses that nobody has one admin may try.

The form that adds a member has to say that nobody has an address, so it could be asked for all.
"""

from __future__ import annotations

from typing import Final

from django.core.cache import cache

from workspaces.models import User

LIMIT: Final = 20
"""In an hour, and so more than anybody mistypes."""
_SECONDS: Final = 3600


def may_guess(user: User) -> bool:
    return int(cache.get(_key(user), 0)) < LIMIT


def note_wrong_guess(user: User) -> None:
    if not cache.add(_key(user), 1, _SECONDS):
        try:
            cache.incr(_key(user))
        except ValueError:
            cache.set(_key(user), 1, _SECONDS)  # It ended in between.


def _key(user: User) -> str:
    return f"wrong-guesses:{user.pk}"
