"""The traces of tool calls: written after the answer, in batches, by a thread of their own.

What is recorded is who called what, when, how it ended, and one event per URI. Contents are
recorded nowhere. Source: Resource Arguments, "What your tool can receive", last paragraph.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID, uuid4

from django.db import IntegrityError, close_old_connections, transaction

from connectors.actions import doubt_connection
from connectors.models import Caller, Connector, Outcome, ToolCall, TraceEvent
from connectors.protocol.text import flatten
from connectors.sessions import FaultKind
from workspaces import tallies
from workspaces.models import ApiToken, User, Workspace

logger = logging.getLogger(__name__)

RESOURCE_ARGUMENT: Final = "resource_argument"
RESOURCE_READ: Final = "resource_read"
MAX_WAITING = 10_000
"""Traces that wait to be written; further ones are lost, and the log says so."""
BATCH = 200
WINDOW_SECONDS = 0.2
"""How long the first trace of a batch waits for company; less when somebody wants it written."""


@dataclass(frozen=True, slots=True)
class Event:
    """One URI of a call. server_id: who was asked for it. code: an outcome code, `ok` included."""

    uri: str
    offset_ms: int
    code: str
    size_bytes: int = 0
    server_id: int | None = None
    server_name: str = ""
    kind: str = RESOURCE_ARGUMENT


@dataclass(slots=True)
class Trace:
    """One tool call, filled in while it runs. problem: our own words, nothing a server sent; fault:
    the kind, where a server failed."""

    workspace_id: int
    caller: Caller
    user_id: int | None
    token_id: int | None
    tool: str
    started_at: datetime
    started_seconds: float = field(default_factory=time.monotonic)
    id: UUID = field(default_factory=uuid4)
    connector_id: int | None = None
    connector_name: str = ""
    duration_ms: int = 0
    outcome: Outcome = Outcome.OK
    problem: str = ""
    fault: FaultKind | None = None
    events: list[Event] = field(default_factory=list)

    def end(self, outcome: Outcome, problem: str = "", fault: FaultKind | None = None) -> None:
        self.outcome, self.problem, self.fault = outcome, problem, fault
        self.duration_ms = self.offset_ms(time.monotonic())

    def offset_ms(self, at_seconds: float) -> int:
        return max(0, round((at_seconds - self.started_seconds) * 1000))


@dataclass(frozen=True, slots=True)
class Doubt:
    """A connection failed under a call or a read of one."""

    connector_id: int


Noted = Trace | Doubt


def write_noted(noted: list[Noted]) -> None:
    """Have the connectors looked at whose connection came into doubt, and store the traces."""
    for connector_id in {each.connector_id for each in noted if isinstance(each, Doubt)}:
        doubt_connection(connector_id)
    if traces := [each for each in noted if isinstance(each, Trace)]:
        write_traces(traces)


def write_traces(traces: list[Trace]) -> None:
    """Store traces.

    What was removed while a call ran leaves the trace without it; a call in a workspace that is
    gone leaves none.
    """
    try:
        _insert(traces)
    except IntegrityError:
        _insert(_without_what_is_gone(traces))
    _count(traces)


def _count(traces: list[Trace]) -> None:
    for trace in traces:
        if trace.caller is not Caller.PERSON:
            tallies.count("endpoint_calls", str(trace.outcome))
        for event in trace.events:
            if event.kind == RESOURCE_ARGUMENT:
                tallies.count("resource_arguments", event.code)
    tallies.flush()


@transaction.atomic
def _insert(traces: list[Trace]) -> None:
    calls = [_call(each) for each in traces]
    ToolCall.objects.bulk_create(calls)
    events = [
        _event(call, position, event)
        for call, each in zip(calls, traces, strict=True)
        for position, event in enumerate(each.events)
    ]
    TraceEvent.objects.bulk_create(events, batch_size=1000)


def _without_what_is_gone(traces: list[Trace]) -> list[Trace]:
    workspaces = _existing(Workspace, (each.workspace_id for each in traces))
    kept = [each for each in traces if each.workspace_id in workspaces]
    servers = [event.server_id for each in kept for event in each.events]
    connectors = _existing(Connector, [*(each.connector_id for each in kept), *servers])
    users = _existing(User, (each.user_id for each in kept))
    tokens = _existing(ApiToken, (each.token_id for each in kept))
    return [
        replace(
            each,
            connector_id=each.connector_id if each.connector_id in connectors else None,
            user_id=each.user_id if each.user_id in users else None,
            token_id=each.token_id if each.token_id in tokens else None,
            events=[
                replace(event, server_id=event.server_id if event.server_id in connectors else None)
                for event in each.events
            ],
        )
        for each in kept
    ]


def _existing(model: Any, ids: Iterable[int | None]) -> set[int]:
    wanted = {each for each in ids if each is not None}
    return (
        set(model.objects.filter(pk__in=wanted).values_list("pk", flat=True)) if wanted else set()
    )


def _call(trace: Trace) -> ToolCall:
    read = sum(event.code == "ok" for event in trace.events)
    return ToolCall(
        id=trace.id,
        workspace_id=trace.workspace_id,
        connector_id=trace.connector_id,
        connector_name=trace.connector_name[:100],
        # Named by a server, in the problem too; PostgreSQL takes no NUL.
        tool=flatten(trace.tool)[:200],
        caller=trace.caller,
        user_id=trace.user_id,
        token_id=trace.token_id,
        started_at=trace.started_at,
        duration_ms=trace.duration_ms,
        outcome=trace.outcome,
        problem=flatten(trace.problem)[:300],
        fault=trace.fault or "",
        resources_read=read,
        resources_refused=len(trace.events) - read,
    )


def _event(call: ToolCall, position: int, event: Event) -> TraceEvent:
    return TraceEvent(
        call=call,
        position=position,
        kind=event.kind,
        offset_ms=event.offset_ms,
        uri=event.uri,
        server_id=event.server_id,
        server_name=event.server_name[:100],
        code=event.code,
        size_bytes=event.size_bytes,
    )


class Recorder:
    """Takes what calls leave behind without delay, and writes it in the background."""

    def __init__(self, write: Callable[[list[Noted]], None] = write_noted) -> None:
        self._write = write
        self._waiting: queue.Queue[Noted] = queue.Queue(MAX_WAITING)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._hurry = threading.Event()

    def put(self, noted: Noted) -> None:
        """Have it written soon. Never waits and never fails."""
        try:
            self._waiting.put_nowait(noted)
        except queue.Full:
            logger.warning("A trace was lost: too many wait", extra={"action": "trace_lost"})
            return
        with self._lock:
            # A forked child has the object without its thread.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._main, name="traces", daemon=True)
                self._thread.start()

    def flush(self, timeout_seconds: float = 5) -> bool:
        """Wait until everything put so far is written; False when the time is over first."""
        self._hurry.set()
        with self._waiting.all_tasks_done:
            return self._waiting.all_tasks_done.wait_for(
                lambda: not self._waiting.unfinished_tasks, timeout_seconds
            )

    def _main(self) -> None:
        while True:
            batch = [self._waiting.get()]
            self._hurry.wait(WINDOW_SECONDS)
            self._hurry.clear()
            while len(batch) < BATCH and not self._waiting.empty():
                batch.append(self._waiting.get_nowait())
            close_old_connections()
            if not self._try(batch) and len(batch) > 1:
                for each in batch:
                    self._try([each])
            close_old_connections()
            for _ in batch:
                self._waiting.task_done()

    def _try(self, batch: list[Noted]) -> bool:
        try:
            self._write(batch)
        except Exception:
            logger.exception("Traces were not written", extra={"calls": len(batch)})
            return False
        return True


recorder = Recorder()
"""The recorder of this process."""
