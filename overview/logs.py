"""What must not be in a log line, whoever wrote it."""

from __future__ import annotations

import re
from collections.abc import MutableMapping
from typing import Any

from django.core.exceptions import PermissionDenied

from workspaces.spans import trace_id

# A sign-in link is a key for as long as nobody has used it, and so is what an authorization
# server sends somebody back with.
_LINKS = re.compile(r"(?<=/sign-in/link/)[^\s'\"?>]+|(?<=/oauth/callback/)[^\s'\">]+")
# Controls, line ends of any kind, and what reorders the text beside it.
_UNSHOWABLE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def on_one_line(
    logger: Any, method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """A structlog processor for text: what a stranger named forges no line and moves no cursor.

    A traceback keeps its lines, each of them indented. JSON needs none of this.
    """
    shown = {
        _visible(name): _visible(value) if isinstance(value, str) else value
        for name, value in event.items()
        if name != "exception"
    }
    if isinstance(traceback := event.get("exception"), str):
        shown["exception"] = "\n".join(f"    {_visible(line)}" for line in traceback.split("\n"))
    return shown


def _visible(text: str) -> str:
    return _UNSHOWABLE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def with_trace_id(
    logger: Any, method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """A structlog processor: the trace that a line belongs to, where traces are recorded."""
    if (found := trace_id()) is not None:
        event["trace_id"] = found
    return event


def without_refused_traces(
    logger: Any, method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """A structlog processor: that somebody may not do a thing is one line, without a traceback."""
    match event.get("exc_info"):
        case (_, PermissionDenied(), _):
            del event["exc_info"]
    return event


def without_links(
    logger: Any, method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """A structlog processor: blank the secret part of sign-in links, and what was asked for.

    What follows a "?" is what somebody typed or what another site sent them with.
    """
    if "request" in event:
        event["request"] = str(event["request"]).partition("?")[0]
    return {
        name: _LINKS.sub("…", value) if isinstance(value, str) else value
        for name, value in event.items()
    }
