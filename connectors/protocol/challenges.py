"""What a server that refuses a credential says about it: the Bearer challenge of a 401 or 403.

Pure. Source: RFC 6750 section 3, RFC 9728 section 5.1, RFC 9110 section 11.6.1.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

MAX_SCOPES: Final = 50
_WORD: Final = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"
_PART: Final = re.compile(rf'[\s,]*({_WORD})(?:[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]*)))?')
_SCOPE: Final = re.compile(r"[!#-\[\]-~]{1,200}")


@dataclass(frozen=True, slots=True)
class Challenge:
    """A Bearer challenge, untrusted. Each member is empty when it was not said."""

    error: str = ""
    scope: str = ""
    """Space-separated, each a valid scope, none twice."""
    resource_metadata: str = ""


def parse_challenge(header: str | None) -> Challenge:
    """Read the first Bearer challenge in a WWW-Authenticate header, which may hold several."""
    parameters: dict[str, str] = {}
    scheme, position = "", 0
    while match := _PART.match(header or "", position):
        position = match.end()
        name, quoted, plain = match[1].lower(), match[2], match[3]
        if quoted is None and plain is None:
            if scheme == "bearer":
                break
            scheme = name
        elif scheme == "bearer":
            value = plain if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
            parameters.setdefault(name, value)
    return Challenge(
        error=parameters.get("error", ""),
        scope=clean_scope(parameters.get("scope", "")),
        resource_metadata=parameters.get("resource_metadata", ""),
    )


def clean_scope(text: object) -> str:
    """Give the valid scopes in a text, space-separated, each once and in its order."""
    words = text.split() if isinstance(text, str) else []
    scopes = [word for word in dict.fromkeys(words) if _SCOPE.fullmatch(word)]
    return " ".join(scopes[:MAX_SCOPES])


def missing_scope(header: str | None) -> str | None:
    """The scope that a refused credential lacks; "" if the server does not name it.

    None when something else was refused.
    """
    challenge = parse_challenge(header)
    return challenge.scope if challenge.error == "insufficient_scope" else None
