"""Connectors that are wanted and not ready, over all workspaces, in two statements.

For operators, who need not be members: whose it is, its status, since when and why. Nothing of what
its server publishes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from connectors.inputs import host_of
from connectors.models import Connector
from connectors.queries import STANDING_FIELDS, Standing, is_ready, standings
from connectors.status import Status

_FIELDS = (*STANDING_FIELDS, "command", "failure", "connection_since", "created_at")


@dataclass(frozen=True, slots=True)
class Waiting:
    """A connector that needs somebody. reason: people's words, as its own page has them."""

    workspace: str
    workspace_name: str
    slug: str
    name: str
    server: str
    status: Status
    label: str
    since: datetime
    reason: str

    def matches(self, words: str) -> bool:
        sought = (self.workspace, self.workspace_name, self.name, self.server)
        return any(words.casefold() in each.casefold() for each in sought)


def waiting_connectors(now: datetime) -> list[Waiting]:
    """Those that wait the longest first."""
    wanted = Connector.objects.filter(workspace__isnull=False, asked_at__isnull=False)
    # A ready one that declares settings may still miss one: only its standing can tell.
    doubtful = wanted.exclude(is_ready(), required=[], url__regex=r"^[^{]*$")
    rows = doubtful.select_related("workspace").only(*_FIELDS, "workspace__slug", "workspace__name")
    found = [
        _waiting(each)
        for each in standings(rows, now)
        if each.status not in (Status.READY, Status.AT_REST)
    ]
    return sorted(found, key=lambda each: each.since)


def _waiting(standing: Standing) -> Waiting:
    connector = standing.connector
    assert connector.workspace is not None
    since, reason = _why(standing)
    return Waiting(
        workspace=connector.workspace.slug,
        workspace_name=connector.workspace.name,
        slug=connector.slug,
        name=connector.name,
        server=connector.command or host_of(connector.url),
        status=standing.status,
        label=standing.label,
        since=since or connector.created_at,
        reason=reason,
    )


def _why(standing: Standing) -> tuple[datetime | None, str]:
    connector = standing.connector
    match standing.status:
        case Status.CONFIGURATION_REQUIRED:
            names = ", ".join(standing.missing)
            return connector.asked_at, f"Settings without a value: {names}."
        case Status.CONNECTING:
            return connector.sign_in_started_at, "A sign-in to the server is under way."
        case Status.RECONNECTION_NEEDED:
            refused = connector.credential_refused_at or connector.connection_since
            return refused, connector.failure or "The server wants a sign-in."
        case Status.FAILED:
            failure = connector.failure or "The server could not be reached."
            return connector.connection_since, failure
        case _:
            return connector.connection_since, "The server is being reached for the first time."
