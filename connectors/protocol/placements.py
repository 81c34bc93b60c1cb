"""Placements: where an app stands in the shell, and the route that its rows open.

Pure. Source: Facets, "opening your app's first placement route ... by the shell's app order";
decisions D-F5 and F-097 to F-101.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from connectors.protocol.text import flatten, is_blank, is_storable, shorten

MAX_PLACEMENTS: Final = 32
MAX_ROUTE_CHARS: Final = 200
MAX_LABEL_CHARS: Final = 100
DEFAULT_PRIORITY: Final = 100
MAX_PRIORITY: Final = 1_000_000

_SLOT: Final = re.compile(r"[a-z0-9]+([._-][a-z0-9]+){0,7}")
_ICON: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+){0,7}")
_SEGMENT: Final = r"[a-z0-9][a-z0-9_-]{0,63}"
# No dot, no colon, no leading slash: nothing that a browser could take out of the app area.
_ROUTE: Final = re.compile(rf"{_SEGMENT}(/{_SEGMENT})*")


@dataclass(frozen=True, slots=True)
class Placement:
    """One place of an app. route: relative and safe to put behind /app/, None if it has none."""

    slot: str
    route: str | None
    label: str | None
    icon: str | None
    priority: int = DEFAULT_PRIORITY

    @property
    def is_openable(self) -> bool:
        """Whether the shell shows this slot as a page of its own."""
        return self.slot == "main" or self.slot.startswith("sidebar.")


def parse_placements(value: object) -> tuple[list[Placement], list[str]]:
    """Read the placements of a description, untrusted, in declaration order.

    Returns what can be used and, in words for people, what was left out. A bad member costs
    itself, a bad slot its placement.
    """
    if value is None:
        return [], []
    if not isinstance(value, list):
        return [], ["placements is not a list"]
    placements: list[Placement] = []
    reasons: list[str] = []
    if len(value) > MAX_PLACEMENTS:
        reasons.append(f"only the first {MAX_PLACEMENTS} placements are used")
    for number, entry in enumerate(value[:MAX_PLACEMENTS], start=1):
        placement, left_out = _placement_of(entry)
        reasons += [f"placement {number}: {reason}" for reason in left_out]
        if placement is not None:
            placements.append(placement)
    return placements, reasons


def _placement_of(entry: object) -> tuple[Placement | None, list[str]]:
    if not isinstance(entry, dict):
        return None, ["not an object"]
    slot = _matching(_SLOT, entry.get("slot"))
    if slot is None:
        return None, ["slot is missing or has characters that a slot cannot have"]
    route = _matching(_ROUTE, entry.get("route"), MAX_ROUTE_CHARS)
    label, icon, priority = (
        _label_of(entry.get("label")),
        _matching(_ICON, entry.get("icon")),
        _priority_of(entry.get("priority")),
    )
    read = {"route": route, "label": label, "icon": icon, "priority": priority}
    reasons = [
        f"{member} cannot be used" + _quoted(entry[member])
        for member, outcome in read.items()
        if outcome is None and entry.get(member) is not None
    ]
    if priority is None:
        priority = DEFAULT_PRIORITY
    return Placement(slot, route, label, icon, priority), reasons


def _quoted(value: object) -> str:
    return f": {shorten(value, 80)}" if isinstance(value, str) else ""


def _matching(pattern: re.Pattern[str], value: object, max_chars: int = 64) -> str | None:
    if not isinstance(value, str) or len(value) > max_chars:
        return None
    return value if pattern.fullmatch(value) else None


def _label_of(value: object) -> str | None:
    if not isinstance(value, str) or is_blank(value[:MAX_LABEL_CHARS]) or not is_storable(value):
        return None
    return flatten(value[:MAX_LABEL_CHARS])


def _priority_of(value: object) -> int | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if abs(value) <= MAX_PRIORITY else None


def first_route(placements: Iterable[Placement]) -> str | None:
    """Give the route that an app's rows, card and sidebar entry open; None if it has no page.

    Of the openable placements that have a route: the lowest priority, then declaration order.
    """
    first = _first(placements)
    return first.route if first else None


def app_order_key(
    placements: Iterable[Placement], label: str, identifier: str
) -> tuple[int, str, str, str]:
    """Give the sort key of the shell's app order: priority, then label, then identifier.

    Label is the app's name as people see it; letter case decides only between equal words.
    """
    first = _first(placements)
    priority = first.priority if first else DEFAULT_PRIORITY
    return priority, label.casefold(), label, identifier


def _first(placements: Iterable[Placement]) -> Placement | None:
    openable = (one for one in placements if one.is_openable and one.route)
    return min(openable, key=lambda placement: placement.priority, default=None)
