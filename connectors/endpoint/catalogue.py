"""What one outside client reaches through a workspace's endpoint: values and look-ups.

Pure. Built from stored listings, so that a list costs no server anything and a dead server costs
nobody anything. Entries come from servers, untrusted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

import mcp_types as types
from pydantic import BaseModel, ValidationError

from connectors.ownership import Claim, claimants_of, owner_lookup
from connectors.protocol.identifiers import HOST_SCHEMES, READ_RESOURCE_TOOL
from connectors.protocol.resource_arguments import (
    Declaration,
    OutcomeCode,
    Refusal,
    parse_declaration,
    scheme_of,
)
from connectors.protocol.tools import is_allowed, reaches, visible_to_model
from connectors.protocol.uri_templates import Template
from connectors.sessions import Target
from connectors.status import Status

MAX_NAME_CHARS: Final = 128
"""Of a tool's name. Source: MCP, "Tool Names"."""

_DIGEST_CHARS: Final = 10
_MAPS_OF_SCHEMAS: Final = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
)
_PLAIN_DATA: Final = frozenset({"default", "const", "enum", "examples"})
_HEADER_KEYWORD: Final = "x-mcp-header"

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Caller:
    """On whose behalf a request runs, and how far it reaches.

    allowed_tools: globs of tool names; None allows all.
    """

    workspace_id: int
    user_id: int
    token_id: int | None
    allowed_tools: tuple[str, ...] | None
    has_resource_tools: bool

    def may_call(self, name: str) -> bool:
        return is_allowed(self.allowed_tools, name)

    @property
    def may_read(self) -> bool:
        """Whether the agent's own read, and with it resource arguments, reach connectors."""
        return reaches(self.allowed_tools)


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """One tool of a connector. public_name: as outside clients know it; entry: as they see it."""

    public_name: str
    name: str
    entry: Entry = field(repr=False)
    declaration: Declaration
    is_repeatable: bool
    """Whether a call that may have run already may be made again: its server says so."""


@dataclass(frozen=True, slots=True)
class Offer:
    """One connector that is not at rest, with what it listed last.

    target: how to reach it, None when it is not ready. has_failed: its resources could not be
    listed and no earlier listing stands in.
    """

    connector_id: int
    slug: str
    name: str
    status: Status
    status_label: str
    is_personal: bool
    target: Target | None = field(repr=False)
    tools: Mapping[str, OfferedTool] = field(repr=False)
    templates: Sequence[Template] = field(repr=False)
    template_entries: Sequence[Entry] = field(repr=False)
    resources: Mapping[str, Entry] = field(repr=False)
    resources_failure: str = ""

    @property
    def is_ready(self) -> bool:
        return self.target is not None


def public_prefix(slug: str, *, is_personal: bool) -> str:
    """Give what stands before the names of a connector's tools.

    A slug has no underscore, so a name leads back to one connector only, whatever its tools are
    called, and nobody's own connector can pass for one of the workspace.
    """
    return f"my_{slug}__" if is_personal else f"{slug}__"


def tools_in(entries: Iterable[object], prefix: str) -> dict[str, OfferedTool]:
    """Read the tools that a model may see out of a raw listing, by public name, in its order.

    An entry that is no tool is left out alone. Of two tools with one name the first counts.
    """
    tools: dict[str, OfferedTool] = {}
    for raw in valid_entries(entries, types.Tool):
        meta = raw.get("_meta")
        if not visible_to_model(meta):
            continue
        name = _bounded(prefix + raw["name"])
        if name == READ_RESOURCE_TOOL:
            continue  # The host's own: a connector called "nb" does not get to shadow it.
        hints = raw.get("annotations") or {}
        entry = raw | {"name": name, "inputSchema": _without_headers(raw["inputSchema"])}
        tools.setdefault(
            name,
            OfferedTool(
                public_name=name,
                name=raw["name"],
                entry=entry,
                declaration=parse_declaration(meta),
                is_repeatable=True in (hints.get("readOnlyHint"), hints.get("idempotentHint")),
            ),
        )
    return tools


def valid_entries(entries: Iterable[object], model: type[BaseModel]) -> Iterator[Entry]:
    """Give the entries of a raw listing that are what they should be, as they are."""
    for raw in entries:
        try:
            model.model_validate(raw, by_name=False)
        except ValidationError:
            continue
        if isinstance(raw, dict):
            yield raw


def _bounded(name: str) -> str:
    if len(name) <= MAX_NAME_CHARS:
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_CHARS]
    return f"{name[: MAX_NAME_CHARS - _DIGEST_CHARS - 1]}_{digest}"


def _without_headers(schema: Any) -> Any:
    """A schema without `x-mcp-header`: the host hands on arguments, not headers made of them."""
    if isinstance(schema, list):
        return [_without_headers(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        keyword: _without_headers_in(keyword, value)
        for keyword, value in schema.items()
        if keyword != _HEADER_KEYWORD
    }


def _without_headers_in(keyword: str, value: Any) -> Any:
    if keyword in _PLAIN_DATA:
        return value
    if keyword in _MAPS_OF_SCHEMAS and isinstance(value, dict):
        return {name: _without_headers(schema) for name, schema in value.items()}
    return _without_headers(value)


class Catalogue:
    """Everything that one caller reaches now, in a stable order: by slug, then as listed."""

    def __init__(self, caller: Caller, offers: Iterable[Offer]) -> None:
        self.caller = caller
        self.offers = sorted(offers, key=lambda offer: (offer.is_personal, offer.slug))
        self._shared = [offer for offer in self.offers if not offer.is_personal]
        self._claims = [
            Claim(each.connector_id, each.is_ready, each.templates) for each in self._shared
        ]
        self.owner_of = owner_lookup(self._claims)

    @property
    def ready(self) -> list[Offer]:
        """The workspace's ready connectors; personal ones serve tools only."""
        return [offer for offer in self._shared if offer.is_ready]

    @property
    def targets(self) -> dict[int, Target]:
        return {each.connector_id: each.target for each in self._shared if each.target is not None}

    def offer(self, connector_id: int) -> Offer:
        return next(each for each in self.offers if each.connector_id == connector_id)

    def tools(self) -> list[Entry]:
        """The connectors' tools on offer: of ready ones, as far as the caller reaches."""
        return [
            tool.entry
            for offer in self.offers
            if offer.is_ready
            for tool in offer.tools.values()
            if self.caller.may_call(tool.public_name)
        ]

    def tool(self, public_name: str) -> tuple[Offer, OfferedTool] | None:
        """Find a tool by its public name, also of a connector that is not ready."""
        for offer in self.offers:
            if tool := offer.tools.get(public_name):
                return offer, tool
        return None

    def resources(self) -> list[Entry]:
        return [entry for offer in self._readable for entry in offer.resources.values()]

    def templates(self) -> list[Entry]:
        return [entry for offer in self._readable for entry in offer.template_entries]

    @property
    def _readable(self) -> list[Offer]:
        return self.ready if self.caller.may_read else []

    def reader_of(self, uri: str) -> Offer | Refusal:
        """Find who is asked for a URI by the agent's own read, ready or not.

        The owner by template, as for resource arguments; without one, the only connector that
        lists the URI. The host's own schemes have no owner, but may be listed.
        """
        if not self.caller.may_read:
            return Refusal(OutcomeCode.NOT_FOUND)
        found: list[Offer] = []
        if scheme_of(uri) not in HOST_SCHEMES:
            claimants = islice(claimants_of(uri, self._claims), 2)
            found = [self.offer(claim.connector_id) for claim, _ in claimants]
        found = found or [offer for offer in self._shared if uri in offer.resources]
        if len(found) > 1:
            return Refusal(OutcomeCode.AMBIGUOUS)
        return found[0] if found else Refusal(OutcomeCode.NOT_FOUND)
