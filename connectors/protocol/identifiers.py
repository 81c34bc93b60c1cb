"""The names that travel between hosts and servers. Pure. Source: the three specifications."""

from __future__ import annotations

from typing import Final

FACETS: Final = "ai.nimblebrain/facets"
RESOURCE_ARGUMENTS: Final = "ai.nimblebrain/resource-arguments"
HOST: Final = "ai.nimblebrain/host"

HOST_SCHEMES: Final = frozenset({"files", "ui", "skill", "artifact", "conversation"})
"""Schemes that belong to the host, in lower case: no server can answer for them."""

READ_RESOURCE_TOOL: Final = "nb__read_resource"
MODERN_REVISION: Final = "2026-07-28"
