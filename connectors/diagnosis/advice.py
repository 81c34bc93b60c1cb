"""What a fault means for who has it, and who can fix it. Pure."""

from __future__ import annotations

from typing import Final

from mcp_types import METHOD_NOT_FOUND

from connectors.diagnosis.values import Finding, Fixer
from connectors.sessions import Fault, FaultKind

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
        "This is no MCP endpoint: another service, or a web page. Look whether the address under "
        "Configure is the endpoint's own; its path is often /mcp.",
        Fixer.ADMIN,
    ),
    FaultKind.REMOTE: (
        "The server is there and answered with an error of its own: its log says more.",
        Fixer.AUTHOR,
    ),
    FaultKind.REDIRECT: (
        "The credential is meant for the stored address and is sent nowhere else. If the other "
        "one is right, enter it under Configure.",
        Fixer.ADMIN,
    ),
    FaultKind.BLOCKED: (
        "Connectors reach public addresses only. The setting CONNECTOR_ALLOWED_NETWORKS allows "
        "more.",
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
    FaultKind.REDIRECT: "Give that address instead, or answer at the one that was given.",
    FaultKind.PROTOCOL: (
        "This is no MCP endpoint: another service, or a web page. Give the endpoint's own address; "
        "its path is often /mcp."
    ),
}
_NO_ENDPOINT: Final = frozenset({404, 405, 406, 410, 501})
"""How HTTP servers answer a request that means nothing at this path."""


def advice_on(fault: Fault, *, has_connector: bool = True, is_reached: bool = False) -> Finding:
    """What to do about a fault.

    has_connector: there is a stored one, with a page of its own. is_reached: the server has shown
    that it speaks MCP, so that its address is right.
    """
    kind = fault.kind
    if is_reached and kind is FaultKind.PROTOCOL:
        return Finding("This answer breaks the protocol: look at what the server sends.")
    if is_reached and fault.code == METHOD_NOT_FOUND:
        return Finding(
            "The server's capabilities say that it knows this request: answer it, or leave the "
            "capability out."
        )
    if not is_reached and fault.http_status in _NO_ENDPOINT:
        return _no_endpoint(has_connector)
    words, fixer = _ADVICE[kind]
    if has_connector or kind not in _AT_THE_COMMAND_LINE:
        return Finding(words, fixer)
    return Finding(_AT_THE_COMMAND_LINE[kind], Fixer.AUTHOR)


def _no_endpoint(has_connector: bool) -> Finding:
    words = "The server is there, and this path is no MCP endpoint; its path is often /mcp. "
    if has_connector:
        return Finding(f"{words}Correct the address under Configure.", Fixer.ADMIN)
    return Finding(f"{words}Give the endpoint's own address.")
