"""Runs the chain of middleware in one thread per request."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.utils.decorators import sync_only_middleware


@sync_only_middleware
def one_thread_middleware(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Last in the chain and without an async form, so that Django calls all others plainly too.

    It would otherwise hand each request to a thread and back for every middleware there is.
    Source: Django, "Asynchronous support", "Performance".
    """
    return get_response
