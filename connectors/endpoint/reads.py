"""The agent's own resource reads: by an outside client, or by one of the host's tools.

Async. A read goes to whom the catalogue says, over the workspace's own session.
"""

from __future__ import annotations

from dataclasses import dataclass

from channels.db import database_sync_to_async
from django.conf import settings

from connectors.actions import doubt_connection
from connectors.endpoint.calls import why_not_ready
from connectors.endpoint.catalogue import Catalogue, Offer
from connectors.endpoint.results import Json
from connectors.protocol.resource_arguments import OutcomeCode, Refusal
from connectors.runtime import sessions
from connectors.sessions import Fault
from workspaces.background import background

UNKNOWN = "No connector in this workspace serves this URI."
AMBIGUOUS = (
    "More than one connector in this workspace serves this URI, so none was read. "
    "A workspace admin can remove one."
)


@dataclass(frozen=True, slots=True)
class Unread:
    """Why nothing was read, in words for people. offer: the connector that was asked, if any."""

    message: str
    code: OutcomeCode = OutcomeCode.NOT_FOUND
    offer: Offer | None = None
    fault: Fault | None = None


async def read(catalogue: Catalogue, uri: str) -> tuple[Offer, Json] | Unread:
    """Read a URI from the connector that serves it."""
    reader = catalogue.reader_of(uri)
    if isinstance(reader, Refusal):
        is_ambiguous = reader.code is OutcomeCode.AMBIGUOUS
        return Unread(AMBIGUOUS if is_ambiguous else UNKNOWN, reader.code)
    return await read_from(reader, uri)


async def read_from(offer: Offer, uri: str) -> tuple[Offer, Json] | Unread:
    """Read a URI from a connector that is known to be the one."""
    if (reason := why_not_ready(offer)) or offer.target is None:
        return Unread(reason or UNKNOWN)
    reading = sessions().read_resource(offer.target, uri, settings.RESOURCE_ARGUMENTS_READ_SECONDS)
    result = await background().result_of(reading)
    if isinstance(result, Fault):
        if result.is_of_connection:
            await database_sync_to_async(doubt_connection)(offer.connector_id)
        return Unread(f"{offer.name}: {result.message}", offer=offer, fault=result)
    return offer, result
