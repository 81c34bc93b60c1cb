"""What must not be in a log line, whoever wrote it."""

from __future__ import annotations

import re
from collections.abc import MutableMapping
from typing import Any

# A sign-in link is a key for as long as nobody has used it, and so is what an authorization
# server sends somebody back with.
_LINKS = re.compile(r"(?<=/sign-in/link/)[^\s'\"?>]+|(?<=/oauth/callback/)[^\s'\">]+")


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
