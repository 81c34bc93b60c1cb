"""Read the URIs of one tool call from their owners. Async shell around the plan; values in and out.

Nothing in here fails: whatever happens to a read, its string gets an entry and the call goes out.
Source: Resource Arguments, "How the host finds the serving server"; R-144 to R-147.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

import anyio

from connectors.protocol.resource_arguments import (
    Contents,
    Limits,
    OutcomeCode,
    Owner,
    Read,
    Refusal,
    parse_contents,
)
from connectors.sessions import Fault, Sessions, Target
from workspaces import spans

logger = logging.getLogger(__name__)

MAX_PARALLEL = 32
"""Reads of one call under way at once; a session bounds what one server gets of them."""


@dataclass(frozen=True, slots=True)
class Settled:
    """What came of one string. server_id: the connector that was asked, None if none was."""

    entry: Contents | Refusal
    server_id: int | None
    at_seconds: float
    """When, on the monotonic clock."""


@dataclass(frozen=True, slots=True)
class Times:
    """How long one read and all reads of a call may take (D-R14)."""

    read_seconds: float = 10
    total_seconds: float = 30


Grant = Callable[[int], Awaitable[int]]
"""Takes that many reads out of the caller's budget; how many of them, the first ones, it covers."""

Doubt = Callable[[int], None]
"""Hears of a connector, by its id, whose connection failed under a read. Does not wait."""


async def resolve(
    sessions: Sessions,
    plan: Mapping[str, Read | Refusal],
    targets: Mapping[int, Target],
    settled: dict[str, Settled],
    *,
    limits: Limits,
    times: Times,
    grant: Grant,
    doubt: Doubt,
) -> dict[str, Contents | Refusal]:
    """Give each string of a plan its entry, in the plan's order.

    targets: by connector id, of the owners. settled: filled as the reads come in, so that a
    caller who is cancelled in between knows what was read.
    """
    reads = [each for each in plan.values() if isinstance(each, Read)]
    granted = await _granted(reads, grant)
    for uri, planned in plan.items():
        if isinstance(planned, Refusal):
            settled[uri] = _settle(planned)
    for read in reads[granted:]:
        settled[read.uri] = _settle(Refusal(OutcomeCode.RATE_LIMITED))
    slots = anyio.CapacityLimiter(MAX_PARALLEL)

    async def make(read: Read) -> None:
        attributes = {"connector.id": read.owner.connector_id}
        async with slots:
            with spans.span("resource argument", attributes=attributes) as around:
                entry = await _read(
                    sessions, targets, read, times.read_seconds, limits=limits, doubt=doubt
                )
                spans.settle(around, entry.code.value, is_error=isinstance(entry, Refusal))
        settled[read.uri] = _settle(entry, read.owner)

    # A task group, not gather: when the caller goes away its reads are aborted (S14).
    with anyio.move_on_after(times.total_seconds):
        async with anyio.create_task_group() as group:
            for read in reads[:granted]:
                group.start_soon(make, read)
    for read in reads[:granted]:
        settled.setdefault(read.uri, _settle(Refusal(OutcomeCode.NOT_FOUND), read.owner))
    return {uri: settled[uri].entry for uri in plan}


async def _granted(reads: list[Read], grant: Grant) -> int:
    return await grant(len(reads)) if reads else 0


async def _read(
    sessions: Sessions,
    targets: Mapping[int, Target],
    read: Read,
    seconds: float,
    *,
    limits: Limits,
    doubt: Doubt,
) -> Contents | Refusal:
    target = targets.get(read.owner.connector_id)
    if target is None:
        return Refusal(OutcomeCode.NOT_FOUND)
    try:
        result = await sessions.read_resource(target, read.uri, seconds)
        # Every way to fail is one code with one message: it says nothing about what exists.
        if isinstance(result, Fault):
            if result.is_of_connection:
                doubt(read.owner.connector_id)
            return Refusal(OutcomeCode.NOT_FOUND)
        return parse_contents(result, limits)
    except Exception as error:
        # Only the kind of error: its text may hold contents.
        logger.error(
            "A resource argument could not be read",
            extra={"connector": read.owner.connector_id, "error": type(error).__name__},
        )
        return Refusal(OutcomeCode.NOT_FOUND)


def _settle(entry: Contents | Refusal, owner: Owner | None = None) -> Settled:
    return Settled(entry, owner.connector_id if owner else None, time.monotonic())
