"""MCP sessions: the only room that opens one. Values in, values out; no Django, no ORM."""

from __future__ import annotations

from connectors.sessions.values import Connected, Fault, FaultKind, Limits, Listed, Target

__all__ = ["Connected", "Fault", "FaultKind", "Limits", "Listed", "Target"]
