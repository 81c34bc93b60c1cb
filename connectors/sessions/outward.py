"""The way out of this process: what the operator decided for all requests to all servers.

A fact of the process and no argument: whoever dials, for MCP, for a sign-in or for a diagnosis,
cannot forget it. Set once, when Django is set up.
"""

from __future__ import annotations

from dataclasses import dataclass

from connectors.sessions.proxy import Proxy


@dataclass(frozen=True, slots=True)
class Outward:
    """proxy: through which all sockets to servers go; None dials them from here.

    tells_trace: whether a server hears in which trace a request belongs, when there is one.
    """

    proxy: Proxy | None = None
    tells_trace: bool = False


_current = Outward()


def outward() -> Outward:
    return _current


def go_out_by(way: Outward) -> None:
    """Use this way from now on. Sockets that are open stay."""
    global _current
    _current = way
