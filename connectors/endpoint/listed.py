"""Stored listings as the endpoint uses them, read once per process and version.

Shell. A listing that another process took since has another version, which every request sees.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import mcp_types as types

from connectors.endpoint.catalogue import (
    Entry,
    OfferedTool,
    public_prefix,
    tools_in,
    valid_entries,
)
from connectors.models import Connector, Listing, ListingKind
from connectors.ownership import templates_in
from connectors.protocol.uri_templates import Template

MAX_KEPT_CHARS: Final = 32 * 1024 * 1024
"""JSON text of the listings that one process keeps; those used longest ago go first."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A stored listing, read: only what its kind has is filled in."""

    tools: Mapping[str, OfferedTool] = field(default_factory=dict)
    templates: tuple[Template, ...] = ()
    entries: tuple[Entry, ...] = ()
    resources: Mapping[str, Entry] = field(default_factory=dict)
    failure: str = ""
    size_chars: int = 0


def _read(kind: str, entries: list[object], prefix: str) -> Listed:
    # Nothing of a listing is kept that does not count, and the text tells how much that is.
    size = len(json.dumps(entries))
    match kind:
        case ListingKind.TOOLS:
            return Listed(tools=tools_in(entries, prefix), size_chars=size)
        case ListingKind.TEMPLATES:
            return Listed(
                templates=templates_in(entries),
                entries=tuple(valid_entries(entries, types.ResourceTemplate)),
                size_chars=size,
            )
        case _:
            resources: dict[str, Entry] = {}
            for entry in valid_entries(entries, types.Resource):
                resources.setdefault(entry["uri"], entry)
            return Listed(resources=resources, size_chars=size)


class Listings:
    """Listings that this process has read, by their version. A new version is a new key."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[int, datetime | None], Listed] = OrderedDict()
        self._chars = 0
        self._lock = threading.Lock()

    def of(self, connectors: Iterable[Connector]) -> dict[tuple[int, str], Listed]:
        """Give the listings of each connector by kind: one statement, and one for what is new."""
        by_id = {each.pk: each for each in connectors}
        rows = list(
            Listing.objects.filter(connector_id__in=by_id).only(
                "connector_id", "kind", "taken_at", "failed_at", "failure"
            )
        )
        found = {(pk, str(kind)): Listed() for pk in by_id for kind in ListingKind.values}
        missing = []
        for row in rows:
            kept = self._get(row)
            if row.taken_at is None:
                found[row.connector_id, row.kind] = Listed(failure=row.failure)
            elif kept is None:
                missing.append(row.pk)
            else:
                found[row.connector_id, row.kind] = kept
        return found | self._load(missing, by_id) if missing else found

    def _load(
        self, ids: list[int], by_id: Mapping[int, Connector]
    ) -> dict[tuple[int, str], Listed]:
        loaded = {}
        for row in Listing.objects.filter(pk__in=ids):
            connector = by_id[row.connector_id]
            prefix = public_prefix(connector.slug, is_personal=connector.is_personal)
            listed = _read(row.kind, row.entries, prefix)
            loaded[row.connector_id, row.kind] = listed
            self._put(row, listed)
        return loaded

    def _get(self, row: Listing) -> Listed | None:
        key = (row.pk, row.taken_at)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def _put(self, row: Listing, listed: Listed) -> None:
        with self._lock:
            before = self._kept.pop((row.pk, row.taken_at), None)
            self._kept[row.pk, row.taken_at] = listed
            self._chars += listed.size_chars - (before.size_chars if before else 0)
            while self._chars > MAX_KEPT_CHARS and len(self._kept) > 1:
                self._chars -= self._kept.popitem(last=False)[1].size_chars
