"""Which templates of different connectors own the same URI, so that the host reads neither. Pure.

Source: Resource Arguments, "One owner"; requirements 4.4, ui "Overlapping templates".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from connectors.protocol.identifiers import HOST_SCHEMES
from connectors.protocol.resource_arguments import scheme_of
from connectors.protocol.uri_templates import Template, overlap, owns

MAX_OVERLAPS: Final = 100
"""More than anybody settles one by one; connectors that have as many are told apart by name."""

Claims = Mapping[int, Sequence[Template]]
"""The templates of each connector that is not at rest, by its id."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """One URI that several connectors own. claims: by connector id, the template that owns it."""

    uri: str
    claims: Mapping[int, Template]

    @property
    def start(self) -> str:
        """What every URI that all of them own starts with, as far as that is fixed."""
        return max((template.start for template in self.claims.values()), key=len)

    def concerns(self, uri: str) -> bool:
        """Whether it is because of these templates that nobody reads this URI."""
        return sum(owns(template, uri) for template in self.claims.values()) > 1


@dataclass(frozen=True, slots=True)
class Comparison:
    """is_complete: False when the time or MAX_OVERLAPS ended it before all pairs were compared."""

    overlaps: tuple[Overlap, ...]
    is_complete: bool


def compare(claims: Claims, is_over: Callable[[], bool]) -> Comparison:
    """Find the overlaps between different connectors, each with an example.

    Pairs whose fixed beginnings differ cost nothing, so that many connectors do not cost their
    square. is_over: asked between pairs, because templates come from servers and one pair may take
    half a second.
    """
    found: dict[tuple[tuple[int, Template], ...], Overlap] = {}
    for a, b in _candidates(claims):
        if is_over() or len(found) == MAX_OVERLAPS:
            return Comparison(tuple(found.values()), is_complete=False)
        uri = example_of(a, b)
        if uri is not None:
            claimed = _claims_of(uri, claims)
            found.setdefault(tuple(claimed.items()), Overlap(uri, claimed))
    return Comparison(tuple(found.values()), is_complete=True)


def _candidates(claims: Claims) -> Iterator[tuple[Template, Template]]:
    """The pairs, of two connectors, that have a beginning and an end in common."""
    owners: defaultdict[Template, set[int]] = defaultdict(set)
    for connector_id, templates in claims.items():
        for template in templates:
            owners[template].add(connector_id)
    # In this order the beginnings that continue one beginning follow it without a gap.
    ordered = sorted(owners, key=lambda template: (template.start, template.text))
    for index, a in enumerate(ordered):
        if len(owners[a]) > 1:
            yield a, a
        for later in range(index + 1, len(ordered)):
            b = ordered[later]
            if not b.start.startswith(a.start):
                break
            if len(owners[a] | owners[b]) > 1 and _ends_agree(a.tail, b.tail):
                yield a, b


def _ends_agree(a: str, b: str) -> bool:
    return a.endswith(b) or b.endswith(a)


@lru_cache(maxsize=65_536)
def example_of(a: Template, b: Template) -> str | None:
    """A URI that both own and that a call could cite: with a scheme, and not one of the host's."""
    uri = overlap(a, b)
    if uri is None or scheme_of(uri) in HOST_SCHEMES:
        return None
    scheme, colon, rest = uri.partition(":")
    # Two templates without a literal scheme meet in a text without one first.
    with_schemes = (
        f"{scheme.lower()}{colon}{rest}",
        f"example://{uri}",
        f"{uri}://example",
        f"{uri}:",
    )
    return next(
        (each for each in with_schemes if scheme_of(each) and owns(a, each) and owns(b, each)), None
    )


def _claims_of(uri: str, claims: Claims) -> dict[int, Template]:
    return {
        connector_id: owning
        for connector_id, templates in claims.items()
        if (owning := next((each for each in templates if owns(each, uri)), None))
    }
