"""What a fault means for who has it, and who can fix it. Pure."""

from __future__ import annotations

from typing import Final

from connectors.diagnosis.values import Finding, Fixer
from connectors.sessions import FaultKind

_ADVICE: Final = {
    FaultKind.UNREACHABLE: (
        "Look whether the server runs, and whether the address and its port are right. A firewall "
        "may be in between.",
        Fixer.AUTHOR,
    ),
    FaultKind.TIMEOUT: (
        "The request arrives and no answer comes in time: look at the server's load and its log.",
        Fixer.AUTHOR,
    ),
    FaultKind.UNAUTHORIZED: ("Sign in, or set a token under Configure.", Fixer.ADMIN),
    FaultKind.FORBIDDEN: (
        "Use a credential that may do this, or sign in again and allow more.",
        Fixer.ADMIN,
    ),
    FaultKind.RATE_LIMITED: (
        "Wait. If it stays so, the server has to allow this host more requests.",
        Fixer.AUTHOR,
    ),
    FaultKind.HTTP: (
        "The server, or the proxy in front of it, is in trouble: its log says more.",
        Fixer.AUTHOR,
    ),
    FaultKind.SESSION_LOST: (
        "The server forgets its sessions. Several processes behind one address have to share them, "
        "or each session has to stay with one process.",
        Fixer.AUTHOR,
    ),
    FaultKind.TOO_LARGE: (
        "Answer with less, or in pages. Who runs the host can raise CONNECTOR_MAX_BODY_BYTES.",
        Fixer.AUTHOR,
    ),
    FaultKind.PROTOCOL: (
        "This is not MCP as the host knows it: the address may be another one than the server's "
        "MCP endpoint (often /mcp).",
        Fixer.AUTHOR,
    ),
    FaultKind.REMOTE: (
        "The server is there and answered with an error of its own: its log says more.",
        Fixer.AUTHOR,
    ),
    FaultKind.REDIRECT: (
        "Only one origin is sent the credential: the stored one. Correct the address, or have the "
        "server answer at it.",
        Fixer.ADMIN,
    ),
    FaultKind.BLOCKED: (
        "Connectors reach public addresses only. CONNECTOR_ALLOWED_NETWORKS allows more.",
        Fixer.OPERATOR,
    ),
    FaultKind.PROXY: (
        "All connectors go out through CONNECTOR_PROXY. Look whether it runs, whether it lets this "
        "host connect to any address and port that servers have, and whether its credentials are "
        "right. Its log says more.",
        Fixer.OPERATOR,
    ),
    FaultKind.CLOSED: (
        "The server, or something in between, cut the connection: look for a crash in its log.",
        Fixer.AUTHOR,
    ),
}
_AT_THE_COMMAND_LINE: Final = {
    FaultKind.UNAUTHORIZED: "Give a token with --bearer, or a header with --header.",
    FaultKind.FORBIDDEN: "Give a credential that may do this.",
    FaultKind.REDIRECT: "Give this address instead, or answer at the one that was given.",
}


def advice_on(kind: FaultKind, *, has_connector: bool = True) -> Finding:
    """What to do about a fault. has_connector: there is a stored one, with a page of its own."""
    words, fixer = _ADVICE[kind]
    if has_connector or kind not in _AT_THE_COMMAND_LINE:
        return Finding(words, fixer)
    return Finding(_AT_THE_COMMAND_LINE[kind], Fixer.AUTHOR)
