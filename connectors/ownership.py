"""Which connector of a workspace owns a URI, by the resource templates that it last listed.

Pure. Every connector that is not at rest counts, ready or not, so that an outage of the real owner
hands its URIs to nobody else (D-R7). A listed resource is no claim (D-R8).
Source: Resource Arguments, "How the host finds the serving server".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from connectors.protocol.resource_arguments import OutcomeCode, Owner, OwnerLookup, Refusal
from connectors.protocol.uri_templates import BadTemplate, Template, owns, parse


@dataclass(frozen=True, slots=True)
class Claim:
    """What one connector that is not at rest claims."""

    connector_id: int
    is_ready: bool
    templates: Sequence[Template]


def templates_in(entries: Iterable[object]) -> tuple[Template, ...]:
    """Read the templates out of raw listing entries; what does not parse claims nothing (R-079)."""
    return tuple(_parsed(entries))


def _parsed(entries: Iterable[object]) -> Iterator[Template]:
    for entry in entries:
        text = entry.get("uriTemplate") if isinstance(entry, dict) else None
        if not isinstance(text, str):
            continue
        try:
            yield parse(text)
        except BadTemplate:
            continue


def claimants_of(uri: str, claims: Iterable[Claim]) -> Iterator[tuple[Claim, Template]]:
    """Give each connector that owns the URI, with the first of its templates that does."""
    for claim in claims:
        template = next((each for each in claim.templates if owns(each, uri)), None)
        if template is not None:
            yield claim, template


def owner_lookup(claims: Sequence[Claim]) -> OwnerLookup:
    """Give the look-up for `plan_reads`: the one owner, if it is ready, and never a guess."""

    def owner_of(uri: str) -> Owner | Refusal:
        claimants = claimants_of(uri, claims)
        first, second = next(claimants, None), next(claimants, None)
        if second is not None:
            return Refusal(OutcomeCode.AMBIGUOUS)
        if first is None or not first[0].is_ready:
            return Refusal(OutcomeCode.NOT_FOUND)
        return Owner(first[0].connector_id)

    return owner_of
