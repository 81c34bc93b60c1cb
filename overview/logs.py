"""What must not be in a log line, whoever wrote it."""

from __future__ import annotations

import re
from typing import Any

# A sign-in link is a key for as long as nobody has used it.
_LINKS = re.compile(r"(/sign-in/link/)[^\s'\"?>]+")


def without_links(logger: Any, method: str, event: dict[str, Any]) -> dict[str, Any]:
    """A structlog processor: blank the secret part of sign-in links."""
    return {
        name: _LINKS.sub(r"\1…", value if isinstance(value, str) else str(value))
        if isinstance(value, str) or name == "request"
        else value
        for name, value in event.items()
    }
