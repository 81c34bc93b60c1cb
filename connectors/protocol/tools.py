"""Tools: which of them an agent may use, and which a model may see.

Pure. Source: Resource Arguments, "The same reach"; MCP Apps, `_meta.ui.visibility`.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from connectors.protocol.identifiers import READ_RESOURCE_TOOL


def is_allowed(allowed_tools: Sequence[str] | None, name: str) -> bool:
    """Say whether a list of allowed tools, with globs, covers a tool. None allows every tool."""
    return allowed_tools is None or any(fnmatchcase(name, pattern) for pattern in allowed_tools)


def reaches(allowed_tools: Sequence[str] | None) -> bool:
    """Say whether the agent's own resource read is allowed, and with it resource arguments."""
    return is_allowed(allowed_tools, READ_RESOURCE_TOOL)


def visible_to_model(meta: object) -> bool:
    """Say whether a model may see and call a tool: a visibility list without "model" hides it.

    meta: the tool's `_meta`, untrusted.
    """
    ui = meta.get("ui") if isinstance(meta, dict) else None
    visibility = ui.get("visibility") if isinstance(ui, dict) else None
    return not isinstance(visibility, list) or "model" in visibility
