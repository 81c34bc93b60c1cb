"""What the two servers say, and what they saw."""

from __future__ import annotations

from tests.connectors.outside import delivered, resource


def codes(server):
    """Code by string of what was delivered last; "ok" for contents."""
    entries = delivered(server) or {}
    for entry in entries.values():
        assert set(entry) in ({"contents"}, {"error"}) and (
            "error" not in entry or set(entry["error"]) == {"code", "message"}
        )
    return {uri: entry.get("error", {"code": "ok"})["code"] for uri, entry in entries.items()}


def read_uris(server):
    return [each.params["uri"] for each in server.seen("resources/read")]


def echo(request):
    return resource(request.params["uri"], f"record {request.params['uri']}")
