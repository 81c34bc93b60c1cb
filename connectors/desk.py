"""The ambiguity desk: what two connectors both serve, what it costs, and what would settle it.

Reads. The connectors and their templates are those of the caller's catalogue, so that the desk and
the endpoint cannot disagree about who owns what (D9).
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final
from uuid import UUID

from connectors.desk_words import effect_of, shared_offers, taken_by
from connectors.endpoint.catalogue import Catalogue, Offer
from connectors.models import Connector, TraceEvent
from connectors.overlaps import Comparison, Overlap, compare
from connectors.protocol.resource_arguments import OutcomeCode, scheme_of
from connectors.protocol.uri_templates import Template
from connectors.queries import connectors_of
from connectors.status import Action, allowed
from workspaces.models import Workspace

COMPARE_SECONDS: Final = 2.0
REFUSED_DAYS: Final = 7
MAX_EVENTS: Final = 2_000
"""Refusals that are looked at, the newest; where there are more, a count is "at least"."""


@dataclass(frozen=True, slots=True)
class Side:
    """One connector of an overlap. takes: what its one expression stands for in the example."""

    connector: Connector
    offer: Offer
    template: Template
    takes: str | None
    effect: str
    """What becomes of the URIs when this connector is taken away, in words."""

    @property
    def segments(self) -> list[tuple[str, bool]]:
        """The template in pieces, each with whether it stands for something else."""
        pieces = re.split(r"(\{[^}]*\})", self.template.text)
        return [(piece, piece.startswith("{")) for piece in pieces if piece]

    @property
    def can_disconnect(self) -> bool:
        return allowed(self.offer.status, Action.DISCONNECT)


@dataclass(frozen=True, slots=True)
class Case:
    """One overlap, as the desk shows it. possible_since: None when nobody knows."""

    overlap: Overlap
    sides: list[Side]
    citing_tools: int
    refused_calls: int
    possible_since: Side | None


@dataclass(frozen=True, slots=True)
class Desk:
    """is_complete: whether all templates were compared. at_rest: connectors that do not count."""

    cases: list[Case]
    is_complete: bool
    is_count_cut: bool
    at_rest: list[Connector]


@dataclass(frozen=True, slots=True)
class Warned:
    """What the list of connectors says about overlaps."""

    templates: int
    refused_calls: int


def desk_of(workspace: Workspace, catalogue: Catalogue, now: datetime) -> Desk:
    """Everything that the desk shows; the cases that refused most calls come first."""
    offers = shared_offers(catalogue)
    comparison = _compared(offers.values())
    refused = _refused(workspace, now) if comparison.overlaps else _Refused({}, is_cut=False)
    rows = connectors_of(workspace).select_related("asked_by").order_by("name")
    connectors = {each.pk: each for each in rows.defer("capabilities", "discovery")}
    citing = _citing(offers.values())
    cases = [
        _case(overlap, offers, connectors, citing, refused)
        for overlap in comparison.overlaps
        # One that was removed between two statements settles what it was part of.
        if overlap.claims.keys() <= connectors.keys()
    ]
    return Desk(
        cases=sorted(cases, key=lambda case: (-case.refused_calls, case.overlap.uri)),
        is_complete=comparison.is_complete,
        is_count_cut=refused.is_cut,
        at_rest=[each for pk, each in connectors.items() if pk not in offers],
    )


def overlapping_of(connector: Connector, catalogue: Catalogue) -> set[str]:
    """The templates of one connector that overlap with another one's, as they were listed."""
    overlaps = _compared(shared_offers(catalogue).values()).overlaps
    return {each.claims[connector.pk].text for each in overlaps if connector.pk in each.claims}


def warning_of(workspace: Workspace, catalogue: Catalogue, now: datetime) -> Warned | None:
    """What the list of connectors warns of: how many templates overlap; None when none do."""
    overlaps = _compared(shared_offers(catalogue).values()).overlaps
    if not overlaps:
        return None
    concerned = {pair for overlap in overlaps for pair in overlap.claims.items()}
    refused = _refused(workspace, now)
    calls = {call for each in overlaps for call in refused.about(each)}
    return Warned(len(concerned), len(calls))


def _compared(offers: Iterable[Offer]) -> Comparison:
    return _comparison(tuple((each.connector_id, tuple(each.templates)) for each in offers))


@lru_cache(maxsize=128)
def _comparison(claims: tuple[tuple[int, tuple[Template, ...]], ...]) -> Comparison:
    """Kept by what is compared: a listing that is taken again and says the same costs nothing."""
    until = time.monotonic() + COMPARE_SECONDS
    return compare(dict(claims), lambda: time.monotonic() > until)


def _case(
    overlap: Overlap,
    offers: Mapping[int, Offer],
    connectors: Mapping[int, Connector],
    citing: Mapping[str, int],
    refused: _Refused,
) -> Case:
    sides = [
        Side(
            connector=connectors[pk],
            offer=offers[pk],
            template=template,
            takes=taken_by(template, overlap.uri),
            effect=effect_of(overlap, pk, offers),
        )
        for pk, template in overlap.claims.items()
    ]
    # Two have to be asked for: it cannot be older than the second of them.
    asked = sorted((each for each in sides if each.connector.asked_at), key=_asked_at)
    return Case(
        overlap=overlap,
        sides=sides,
        citing_tools=citing.get(scheme_of(overlap.uri) or "", 0),
        refused_calls=len(refused.about(overlap)),
        possible_since=asked[1] if len(asked) > 1 else None,
    )


def _asked_at(side: Side) -> datetime:
    assert side.connector.asked_at is not None
    return side.connector.asked_at


def _citing(offers: Iterable[Offer]) -> dict[str, int]:
    """How many tools declare each scheme."""
    counts: defaultdict[str, int] = defaultdict(int)
    for offer in offers:
        for tool in offer.tools.values():
            for scheme in frozenset().union(*tool.declaration.values()):
                counts[scheme] += 1
    return counts


@dataclass(frozen=True, slots=True)
class _Refused:
    """The calls that were refused a URI as ambiguous in the last days, by URI."""

    calls: Mapping[str, set[UUID]]
    is_cut: bool

    def about(self, overlap: Overlap) -> set[UUID]:
        concerned = (calls for uri, calls in self.calls.items() if overlap.concerns(uri))
        return set().union(*concerned)


def _refused(workspace: Workspace, now: datetime) -> _Refused:
    events = TraceEvent.objects.filter(
        code=OutcomeCode.AMBIGUOUS,
        call__workspace=workspace,
        call__started_at__gte=now - timedelta(days=REFUSED_DAYS),
    )
    newest = list(events.order_by("-call__started_at")[:MAX_EVENTS].values_list("uri", "call_id"))
    calls: defaultdict[str, set[UUID]] = defaultdict(set)
    for uri, call in newest:
        calls[str(uri)].add(call)
    return _Refused(calls, is_cut=len(newest) == MAX_EVENTS)
