"""MCP sessions: the only room that opens one. Values in, values out; no Django, no ORM.

values.py says what crosses the border, pool.py has the door (`Sessions`). Behind it:
connection.py (the owner of one connection), handshake.py (the era), calls.py (what is asked),
wire.py with http_wire.py and stdio_wire.py (the two transports), endpoint.py (HTTP requests and
their redirects), guard.py (dialling).
"""

from __future__ import annotations

from connectors.sessions.pool import Sessions
from connectors.sessions.values import Connected, Fault, FaultKind, Limits, Listed, Target

__all__ = ["Connected", "Fault", "FaultKind", "Limits", "Listed", "Sessions", "Target"]
