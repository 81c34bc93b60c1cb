"""Reads of the traces of a workspace's tool calls: filtered, by page, and one with its events."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import Http404
from django.utils.dateparse import parse_datetime

from connectors.models import ToolCall, TraceEvent
from connectors.protocol.resource_arguments import OutcomeCode
from connectors.runtime import resource_limits
from connectors.tool_results import showable
from workspaces.access import Member

PAGE_CALLS: Final = 50
MAX_NEWER: Final = 99
"""Newer calls are counted so far; more are "99+"."""
MAX_URI_CHARS: Final = 4_000


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place in the list, which new calls do not move."""

    started_at: datetime
    id: UUID

    def __str__(self) -> str:
        return f"{self.started_at.isoformat()}~{self.id}"


@dataclass(frozen=True, slots=True)
class Page:
    """newest: the first call's place; older: where the next page goes on, None on the last."""

    calls: list[ToolCall]
    newest: Cursor | None
    older: Cursor | None


@dataclass(frozen=True, slots=True)
class EventLine:
    """One event as people read it. words: of its outcome."""

    event: TraceEvent
    words: str

    @property
    def uri(self) -> str:
        """What stood in the argument, as far as a page can carry it."""
        return showable(str(self.event.uri), MAX_URI_CHARS)

    @property
    def is_read(self) -> bool:
        return self.event.code == OutcomeCode.OK

    @property
    def bytes_handed_on(self) -> str:
        return f"{self.event.size_bytes:,}"


def calls_seen_by(member: Member) -> QuerySet[ToolCall]:
    """The calls in the member's workspace, newest first; other people's own connectors left out.

    A personal connector that was removed is known by its tool's name: no workspace connector has
    an underscore in its slug (`endpoint.catalogue.public_prefix`).
    """
    shared = Q(connector__owner__isnull=True) & ~Q(tool__regex=r"^my_[a-z0-9]")
    calls = ToolCall.objects.filter(Q(user=member.user) | shared, workspace=member.workspace)
    return calls.select_related("connector", "user", "token").order_by("-started_at", "-id")


def filtered(calls: QuerySet[ToolCall], chosen: dict[str, Any]) -> QuerySet[ToolCall]:
    """Those that match everything that was chosen: see `trace_filters.TraceFilters`."""
    if slug := chosen.get("connector"):
        asked = TraceEvent.objects.filter(call=OuterRef("pk"), server__slug=slug)
        calls = calls.filter(Q(connector__slug=slug) | Exists(asked))
    if words := chosen.get("tool"):
        calls = calls.filter(tool__icontains=words)
    if outcome := chosen.get("outcome"):
        calls = calls.filter(outcome=outcome)
    if code := chosen.get("code"):
        calls = calls.filter(Exists(TraceEvent.objects.filter(call=OuterRef("pk"), code=code)))
    if start := chosen.get("from"):
        calls = calls.filter(started_at__gte=start)
    if end := chosen.get("to"):
        calls = calls.filter(started_at__lte=end)
    return calls


def page_of(calls: QuerySet[ToolCall], before: Cursor | None) -> Page:
    """One page of calls, the newest or those that follow a place."""
    if before is not None:
        same = Q(started_at=before.started_at, id__lt=before.id)
        calls = calls.filter(Q(started_at__lt=before.started_at) | same)
    found = list(calls[: PAGE_CALLS + 1])
    shown = found[:PAGE_CALLS]
    return Page(
        calls=shown,
        newest=_place_of(shown[0]) if shown else None,
        older=_place_of(shown[-1]) if len(found) > PAGE_CALLS else None,
    )


def newer_than(calls: QuerySet[ToolCall], seen: Cursor) -> int:
    """How many calls came since a place was the newest, counted to MAX_NEWER + 1."""
    same = Q(started_at=seen.started_at, id__gt=seen.id)
    return calls.filter(Q(started_at__gt=seen.started_at) | same)[: MAX_NEWER + 1].count()


def _place_of(call: ToolCall) -> Cursor:
    return Cursor(call.started_at, call.pk)


def parse_cursor(text: str) -> Cursor | None:
    """Read a place out of an address; None for anything else."""
    at, _, identifier = text.partition("~")
    try:
        started_at = parse_datetime(at)
        if started_at is None or started_at.tzinfo is None or not 1970 < started_at.year < 9999:
            return None
        return Cursor(started_at, UUID(identifier))
    except ValueError:
        return None


def call_seen_by(member: Member, identifier: UUID) -> ToolCall:
    """Raises: Http404 when the member's workspace has no such call that they may see."""
    call = calls_seen_by(member).filter(pk=identifier).first()
    if call is None:
        raise Http404
    return call


def event_lines(call: ToolCall) -> list[EventLine]:
    """What happened in a call, in its order."""
    events = call.events.select_related("server").order_by("position")
    return [EventLine(event, words_of(event.code)) for event in events]


def words_of(code: str) -> str:
    """Say what an outcome code means. Source: Resource Arguments, "Errors"."""
    limits = resource_limits()
    words = {
        OutcomeCode.OK: "Read",
        OutcomeCode.SCHEME_NOT_DECLARED: "The argument does not declare this scheme; not read",
        OutcomeCode.NOT_FOUND: "No connector here returned it",
        OutcomeCode.AMBIGUOUS: "More than one connector serves it; neither was read",
        OutcomeCode.NOT_TEXT: "Holds content that is not text",
        OutcomeCode.TOO_LARGE: (f"Longer than {limits.max_chars:,} characters; refused every time"),
        OutcomeCode.OVER_LIMIT: (
            f"Past this call's limits ({limits.max_uris} URIs, "
            f"{limits.max_size / 2**20:g} MiB); split the call"
        ),
        OutcomeCode.RATE_LIMITED: "This server's resource budget is spent",
    }
    return {key.value: text for key, text in words.items()}.get(code, code)
