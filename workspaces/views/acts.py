"""Addresses that only act. There is no page at them, so who signs in on the way to one is led to
the page that the act belongs to."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from django.http import HttpResponse
from django.urls import Resolver404, resolve
from django.views.decorators.http import require_POST

_MARK = "is_act"


def act_only(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Like `require_POST`, and known to be so from outside."""
    guarded = require_POST(view)
    # Decorators around it keep what it has.
    setattr(guarded, _MARK, True)
    return guarded


def page_of(onward: str) -> str:
    """Give a path of ours back; for that of an act, the nearest page above it."""
    path = urlsplit(onward).path
    if not _is_act(path):
        return onward
    while path != "/" and _is_act(path) is not False:
        path = path.rstrip("/").rpartition("/")[0] + "/"
    return path


def _is_act(path: str) -> bool | None:
    """Whether there is only an act; None when there is nothing."""
    try:
        return getattr(resolve(path).func, _MARK, False)
    except Resolver404:
        return None
