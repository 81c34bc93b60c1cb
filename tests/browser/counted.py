"""A real MCP server whose facets a test counts itself, and when it told whom what."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.servers.raw import Drop, RawServer, Reply, Request, raw_server

FACETS = "ai.nimblebrain/facets"
MARKER = "ai.nimblebrain/resource-arguments"


class Counted:
    """facets: name -> (level, title), in the order of the listing. `counts` may change at any time;
    None makes the read fail."""

    def __init__(self, raw: RawServer, facets: dict[str, tuple[str, str]]) -> None:
        self.raw = raw
        self.facets = dict(facets)
        self.counts: dict[str, int | None] = dict.fromkeys(facets, 0)
        self._told: dict[tuple[str, int | None], float] = {}
        raw.on("resources/list", self._list)
        raw.on("resources/read", self._read)

    @property
    def url(self) -> str:
        return self.raw.url

    def count(self, **counts: int | None) -> None:
        """Set counts by name, and forget who was told of them before."""
        self.counts |= counts
        self._told = {key: at for key, at in self._told.items() if key not in counts.items()}

    def seconds_since_told(self, name: str) -> float:
        """Since the host first read this facet's present count."""
        return time.monotonic() - self._told[name, self.counts[name]]

    def refuse(self, status: int | None) -> None:
        """From now on answer every request with this status, or hang up (None); 200 ends it."""

        def refused(request: Request) -> Reply:
            if status is None:
                raise Drop
            return Reply(status)

        self.raw.intercept = None if status == 200 else refused

    def _list(self, request: Request) -> dict[str, Any]:
        entries = [
            {
                "uri": f"test://facets/{name}",
                "name": name,
                "title": title,
                "mimeType": "application/json",
                "_meta": {FACETS: {"level": level}},
            }
            for name, (level, title) in self.facets.items()
        ]
        return {"resources": entries}

    def _read(self, request: Request) -> dict[str, Any]:
        uri = request.params["uri"]
        name = uri.rpartition("/")[2]
        count = self.counts.get(name)
        self._told.setdefault((name, count), time.monotonic())
        text = json.dumps({"count": count})
        return {"contents": [{"uri": uri, "mimeType": "application/json", "text": text}]}


@contextmanager
def counted_server(facets: dict[str, tuple[str, str]]) -> Iterator[Counted]:
    capabilities = {"resources": {}, "tools": {}, "extensions": {FACETS: {}, MARKER: {}}}
    with raw_server(capabilities=capabilities) as raw:
        raw.on("resources/templates/list", {"resourceTemplates": []})
        raw.on("tools/list", {"tools": []})
        yield Counted(raw, facets)
