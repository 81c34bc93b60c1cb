"""What the ambiguity desk says: who serves a URI, and who would if a connector were taken away.

Pure. Source: Resource Arguments, "How the host finds the serving server".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from connectors.endpoint.catalogue import Catalogue, Offer
from connectors.overlaps import Overlap
from connectors.ownership import Claim, claimants_of
from connectors.protocol.identifiers import HOST_SCHEMES
from connectors.protocol.resource_arguments import scheme_of
from connectors.protocol.uri_templates import Template


@dataclass(frozen=True, slots=True)
class Answer:
    """Who serves a URI, in words. kind: one, not_ready, none, several, host or no_uri."""

    kind: str
    words: str


def shared_offers(catalogue: Catalogue) -> dict[int, Offer]:
    """The workspace's connectors that are not at rest; personal ones serve no URIs."""
    return {each.connector_id: each for each in catalogue.offers if not each.is_personal}


def taken_by(template: Template, uri: str) -> str | None:
    """What a template's only expression stands for in a URI that it owns; None for other ones."""
    if template.text.count("{") != 1 or not template.start:
        return None
    return uri[len(template.start) : len(uri) - len(template.tail)]


def effect_of(overlap: Overlap, without: int, offers: Mapping[int, Offer]) -> str:
    """Say who serves the URIs of an overlap once a connector is taken away."""
    left = [offers[pk] for pk in overlap.claims if pk != without]
    return served_by(overlap, left, "will be served by", "will still serve")


def served_by(overlap: Overlap, owners: Sequence[Offer], one: str, several: str) -> str:
    """Say who serves the URIs of an overlap. one, several: the verb for one owner, for more."""
    if len(owners) > 1:
        return f"{_listed(owners)} {several} {pattern_of(overlap)}: it stays ambiguous."
    (owner,) = owners
    words = f"{pattern_of(overlap)} {one} {owner.name}"
    if owner.is_ready:
        return f"{words}."
    return f"{words}, which is not ready ({owner.status_label}): until it is, nothing is read."


def pattern_of(overlap: Overlap) -> str:
    """Name the URIs of an overlap; that is the example where a template owns one URI only."""
    is_one = any(not template.variable_count for template in overlap.claims.values())
    return overlap.uri if is_one or not overlap.start else f"{overlap.start}…"


def _listed(offers: Sequence[Offer]) -> str:
    *first, last = [each.name for each in offers]
    return f"{', '.join(first)} and {last}" if first else last


def answer_of(uri: str, catalogue: Catalogue) -> Answer:
    """Say who serves a URI. uri: anything that somebody entered."""
    scheme = scheme_of(uri)
    if scheme is None:
        return Answer("no_uri", "This is no URI: it has no scheme, such as crm:, at its start.")
    if scheme in HOST_SCHEMES:
        return Answer("host", f"{scheme}:// belongs to the host. No connector can serve it.")
    offers = shared_offers(catalogue)
    claims = [Claim(pk, each.is_ready, each.templates) for pk, each in offers.items()]
    owners = [offers[claim.connector_id] for claim, _ in claimants_of(uri, claims)]
    if not owners:
        words = "It fits no template of a connector. A call that cites it gets not_found."
        return Answer("none", words)
    if len(owners) > 1:
        both, neither = ("both", "Neither") if len(owners) == 2 else ("all", "None")
        words = f"{_listed(owners)} {both} serve it: ambiguous. {neither} of them is read."
        return Answer("several", words)
    owner = owners[0]
    if not owner.is_ready:
        words = f"{owner.name} serves it, but is not ready ({owner.status_label})."
        return Answer("not_ready", f"{words} Until it is, a call that cites it gets not_found.")
    return Answer("one", f"{owner.name} serves it.")
