"""Servers that know what they said and did, to judge what the host shows and how often it acts."""

from __future__ import annotations

import contextlib
import json
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.servers.raw import RawServer, Request, raw_server

STORED_SECONDS = 2
"""From a server's answer to the time that is stored with the count, at most: a read has 1 s."""
TOOL = "note"


class Truth:
    """A server whose one facet counts what a test says, and what it counted at which time."""

    def __init__(self, name: str, server: RawServer) -> None:
        self.name, self.server = name, server
        self.history: list[tuple[float, str]] = []
        self.change(1)
        uri = f"{name}://facets/due"
        marks = {"ai.nimblebrain/facets": {"level": "warning"}}
        entry = {"uri": uri, "name": "due", "title": "Things due", "mimeType": "application/json"}
        server.on("resources/list", {"resources": [{**entry, "_meta": marks}]})
        server.on("resources/read", lambda _: self._read(uri))
        self.calls: Counter[str] = Counter()
        server.on("tools/list", {"tools": [{"name": TOOL, "inputSchema": {"type": "object"}}]})
        server.on("tools/call", self._note)

    @property
    def count(self) -> str:
        return self.history[-1][1]

    def change(self, count: int) -> None:
        self.history.append((time.time(), str(count)))

    def _read(self, uri: str) -> dict[str, Any]:
        text = json.dumps({"count": int(self.count)})
        return {"contents": [{"uri": uri, "mimeType": "application/json", "text": text}]}

    def _note(self, request: Request) -> dict[str, Any]:
        """A tool with a side effect: nothing says that calling it twice is as good as once."""
        self.calls[str(request.params["arguments"]["id"])] += 1
        return {"content": [{"type": "text", "text": "noted"}]}

    def may_have_said(self, count: str, at: float) -> bool:
        """Whether a read that was stored then can have brought this count."""
        ends = [*(since for since, _ in self.history[1:]), time.time()]
        return any(
            said == count and since <= at and at - STORED_SECONDS <= until
            for (since, said), until in zip(self.history, ends, strict=True)
        )


@contextlib.contextmanager
def truth_server(name: str) -> Iterator[Truth]:
    extensions = {"ai.nimblebrain/facets": {}}
    with raw_server(
        capabilities={"resources": {}, "tools": {}, "extensions": extensions}
    ) as server:
        yield Truth(name, server)
