"""The way of one tool call: from the caller's request to the server's answer, and its trace.

Async, on the web server's loop; the reads and the call itself run where the sessions live, on the
background loop, which is the same where the server has a lifespan. Contents pass through memory
only: never a queue, a cache, a log or a table.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from mcp.shared.dispatcher import ProgressFnT

from connectors import budget
from connectors.endpoint.catalogue import Caller, Catalogue, Offer, OfferedTool
from connectors.endpoint.results import Json, problem_of, text_result
from connectors.models import Caller as CallerKind
from connectors.models import Outcome
from connectors.protocol.resource_arguments import (
    Contents,
    OutcomeCode,
    Read,
    Refusal,
    deliver,
    plan_reads,
    strings_of,
)
from connectors.resolution import Settled, Times, resolve
from connectors.runtime import resource_limits, sessions
from connectors.sessions import Fault, Sessions, Target
from connectors.traces import Doubt, Event, Trace, recorder
from workspaces import spans
from workspaces.background import background

logger = logging.getLogger(__name__)

_HOST_KEYS = ("io.modelcontextprotocol/", "progressToken", "traceparent", "tracestate", "baggage")
"""Of a request's `_meta`: the era's envelope belongs to the client's connection, not to ours, and
no server hears of the client's trace."""


@dataclass(frozen=True, slots=True)
class Call:
    """What a client asked for. meta: its request's `_meta`, untrusted."""

    arguments: Json = field(repr=False)
    meta: Mapping[str, Any] = field(default_factory=dict, repr=False)
    on_progress: ProgressFnT | None = None


def new_trace(caller: Caller, tool: str) -> Trace:
    """Begin the trace of a call. A token with a list of tools is a task's."""
    kind = CallerKind.PERSON
    if caller.token_id is not None:
        kind = CallerKind.OUTSIDE if caller.allowed_tools is None else CallerKind.TASK
    return Trace(
        workspace_id=caller.workspace_id,
        caller=kind,
        user_id=caller.user_id,
        token_id=caller.token_id,
        tool=tool,
        started_at=datetime.now(UTC),
    )


async def call_connector(
    catalogue: Catalogue, offer: Offer, tool: OfferedTool, call: Call, trace: Trace
) -> Json | Fault:
    """Call a connector's tool and give its raw result. Fills in the trace and records it.

    A caller who goes away cancels the reads and the call.
    """
    trace.connector_id, trace.connector_name = offer.connector_id, offer.name
    plan = {} if offer.is_personal else _plan(catalogue, tool, call.arguments)
    settled: dict[str, Settled] = {}
    try:
        with spans.span("tool call", attributes={"connector.id": offer.connector_id}) as around:
            outcome = await _on_background(catalogue, offer, tool, call, plan, settled)
            _end(trace, outcome)
            ended = trace.outcome
            spans.settle(around, str(ended), is_error=ended != Outcome.OK)
        return outcome
    except asyncio.CancelledError:
        trace.end(Outcome.CANCELLED, "The caller went away.")
        raise
    except BaseException:
        trace.end(Outcome.FAILED, "The host failed.")
        raise
    finally:
        in_order = {uri: settled[uri] for uri in plan if uri in settled}
        trace.events += _events(catalogue, trace, in_order)
        recorder.put(trace)


def refuse(trace: Trace, reason: str, offer: Offer | None = None) -> Json:
    """Turn a call down before anything is sent: no read is made and no budget used (R-142)."""
    if offer is not None:
        trace.connector_id, trace.connector_name = offer.connector_id, offer.name
    trace.end(Outcome.REFUSED, reason)
    recorder.put(trace)
    return text_result(reason, is_error=True)


def why_refused(catalogue: Catalogue, offer: Offer, tool: OfferedTool) -> str | None:
    if not catalogue.caller.may_call(tool.public_name):
        return f"This token may not call {tool.public_name}."
    return why_not_ready(offer)


def why_not_ready(offer: Offer) -> str | None:
    return None if offer.is_ready else f"{offer.name} is not ready: {offer.status_label}."


def _end(trace: Trace, outcome: Json | Fault) -> None:
    match outcome:
        case Fault():
            if outcome.is_of_connection and trace.connector_id is not None:
                recorder.put(Doubt(trace.connector_id))
            trace.end(Outcome.FAILED, problem_of(outcome), outcome.kind)
        case {"isError": True}:
            trace.end(Outcome.TOOL_ERROR, "The tool reported an error.")
        case _:
            trace.end(Outcome.OK)


def _events(catalogue: Catalogue, trace: Trace, settled: Mapping[str, Settled]) -> list[Event]:
    names = {each.connector_id: each.name for each in catalogue.offers}
    return [
        Event(
            uri=uri,
            offset_ms=trace.offset_ms(each.at_seconds),
            code=each.entry.code.value,
            size_bytes=each.entry.size_bytes,
            server_id=each.server_id,
            server_name=names.get(each.server_id, "") if each.server_id else "",
        )
        for uri, each in settled.items()
    ]


async def _on_background(
    catalogue: Catalogue,
    offer: Offer,
    tool: OfferedTool,
    call: Call,
    plan: Mapping[str, Read | Refusal],
    settled: dict[str, Settled],
) -> Json | Fault:
    assert offer.target is not None
    loop = asyncio.get_running_loop()
    way = _Way(
        sessions=sessions(),
        target=offer.target,
        tool=tool,
        arguments=call.arguments,
        meta={k: v for k, v in call.meta.items() if not k.startswith(_HOST_KEYS)},
        plan=plan,
        targets=catalogue.targets if plan else {},
        workspace_id=catalogue.caller.workspace_id,
        settled=settled,
        on_progress=_across(loop, call.on_progress) if call.on_progress else None,
    )
    return await background().result_of(way.go())


def _plan(catalogue: Catalogue, tool: OfferedTool, arguments: Json) -> dict[str, Read | Refusal]:
    if not tool.declaration:
        return {}
    try:
        return plan_reads(
            tool.declaration,
            arguments,
            resource_limits(),
            is_reachable=catalogue.caller.may_read,
            owner_of=catalogue.owner_of,
        )
    except Exception:
        # The call goes out whatever happens to its citations.
        logger.exception("Reads could not be planned", extra={"tool": tool.public_name})
        strings = strings_of(tool.declaration, arguments)
        return {
            string: Refusal(
                OutcomeCode.NOT_FOUND if is_declared else OutcomeCode.SCHEME_NOT_DECLARED
            )
            for string, is_declared in strings.items()
        }


def _across(loop: asyncio.AbstractEventLoop, on_progress: ProgressFnT) -> ProgressFnT:
    """Report from the background loop to a client of the web server's."""

    async def report(progress: float, total: float | None, message: str | None) -> None:
        sending = asyncio.run_coroutine_threadsafe(_progress(progress, total, message), loop)
        await asyncio.wrap_future(sending)

    async def _progress(progress: float, total: float | None, message: str | None) -> None:
        await on_progress(progress, total, message)

    return report


@dataclass(frozen=True, slots=True)
class _Way:
    """The part of a call that runs on the background loop, with all that it needs."""

    sessions: Sessions
    target: Target
    tool: OfferedTool
    arguments: Json
    meta: Json
    plan: Mapping[str, Read | Refusal]
    targets: Mapping[int, Target]
    workspace_id: int
    settled: dict[str, Settled]
    on_progress: ProgressFnT | None

    async def go(self) -> Json | Fault:
        """Read, then call. The call goes out only after every read has settled (R-141)."""
        entries = await self._entries()
        return await self.sessions.call_tool(
            self.target,
            self.tool.name,
            self.arguments,
            meta=deliver(self.meta, entries),
            timeout=settings.TOOL_CALL_SECONDS,
            is_repeatable=self.tool.is_repeatable,
            on_progress=self.on_progress,
        )

    async def _entries(self) -> dict[str, Contents | Refusal]:
        if not self.plan:
            return {}
        times = Times(
            settings.RESOURCE_ARGUMENTS_READ_SECONDS, settings.RESOURCE_ARGUMENTS_TOTAL_SECONDS
        )
        try:
            return await resolve(
                self.sessions,
                self.plan,
                self.targets,
                self.settled,
                limits=resource_limits(),
                times=times,
                grant=self._grant,
                # At once: the call itself may take a minute.
                doubt=lambda connector_id: recorder.put(Doubt(connector_id)),
            )
        except Exception as error:
            logger.error("Resources were not read", extra={"error": type(error).__name__})
            lost = Refusal(OutcomeCode.NOT_FOUND)
            return {
                uri: lost if isinstance(each, Read) else each for uri, each in self.plan.items()
            }

    async def _grant(self, reads: int) -> int:
        return await asyncio.to_thread(
            budget.grant, self.workspace_id, self.target.connector_id, reads
        )
