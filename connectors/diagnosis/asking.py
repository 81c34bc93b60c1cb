"""What the host asks a server for over one open connection, each answer held against the rules."""

from __future__ import annotations

import asyncio

from mcp_types import METHOD_NOT_FOUND

from connectors.diagnosis.declarations import declaring, in_tools
from connectors.diagnosis.record import SLACK, Record, Terms
from connectors.diagnosis.rules import (
    in_capabilities,
    in_pages,
    in_read,
    in_resources,
    in_templates,
)
from connectors.diagnosis.values import Finding
from connectors.protocol.facets import Facet, advertises_facets, parse_listing
from connectors.protocol.identifiers import FACETS
from connectors.sessions import Connected, Fault, Listed, Sessions, Target

MAX_READS = 50
"""Facets that are read. More of them would show nothing new."""


class Inspection:
    """All that the host asks a server for, over one open connection."""

    def __init__(
        self,
        record: Record,
        sessions: Sessions,
        target: Target,
        terms: Terms,
        connected: Connected,
        newer: Connected | None = None,
    ) -> None:
        self._record, self._sessions, self._target = record, sessions, target
        self._terms, self._connected, self._newer = terms, connected, newer
        self._suffix = f" ({connected.revision})" if terms.is_both_eras else ""
        self._is_advertised = advertises_facets(connected.capabilities)

    async def make(self) -> None:
        self._capabilities()
        facets = await self._resources()
        await self._listing("Resource templates", "resources/templates/list", "resources")
        await self._listing("Tools", "tools/list", "tools")
        await self._reads(facets)

    def _capabilities(self) -> None:
        capabilities = self._connected.capabilities
        names = ", ".join(sorted(set(capabilities) - {"extensions", "experimental"})) or "none"
        extensions = capabilities.get("extensions")
        claimed = ", ".join(sorted(extensions)) if isinstance(extensions, dict) else ""
        facets = "advertised" if self._is_advertised else "not advertised"
        words = f"{names}. Extensions: {claimed or 'none'}. Facets are {facets}."
        findings = [*in_capabilities(capabilities), *self._across_eras()]
        self._record.saw(f"Capabilities{self._suffix}", words, None, findings)

    def _across_eras(self) -> list[Finding]:
        """Source: Facets, "Advertise on every revision you serve"."""
        if self._newer is None or self._is_advertised == advertises_facets(
            self._newer.capabilities
        ):
            return []
        if self._is_advertised:
            words = f"{FACETS} is missing from server/discover, and this host speaks 2026-07-28."
            return [Finding(words)]
        words = (
            f"{FACETS} is missing from the answer to initialize. This host does not need it "
            "there; one that speaks 2025 only sees no facets."
        )
        return [Finding(words, is_failure=False)]

    async def _resources(self) -> list[Facet]:
        listed = await self._entries("Resources", "resources/list", "resources")
        if listed is None:
            return []
        entries, seconds = listed
        facets = parse_listing(entries.entries)[0]
        # What only this era does not advertise was said with the capabilities.
        was_advertised = self._newer is not None and advertises_facets(self._newer.capabilities)
        words = f"{_size(entries)}, {len(facets)} of them facets."
        findings = [
            *in_pages(entries),
            *in_resources(entries.entries, is_advertised=self._is_advertised or was_advertised),
        ]
        self._record.saw(f"Resources{self._suffix}", words, seconds, findings)
        return facets if self._is_advertised else []

    async def _listing(self, name: str, method: str, capability: str) -> None:
        listed = await self._entries(name, method, capability)
        if listed is None:
            return
        entries, seconds = listed
        words = f"{_size(entries)}."
        if method == "tools/list":
            words = f"{_size(entries)}, {declaring(entries.entries)} with resource arguments."
        rules = in_tools if method == "tools/list" else in_templates
        findings = [*in_pages(entries), *rules(entries.entries)]
        self._record.saw(f"{name}{self._suffix}", words, seconds, findings)

    async def _entries(
        self, name: str, method: str, capability: str
    ) -> tuple[Listed, float] | None:
        if not isinstance(self._connected.capabilities.get(capability), dict):
            why = f"The server has no {capability} capability."
            self._record.skipped(f"{name}{self._suffix}", why)
            return None
        limit = self._terms.read_seconds if method == "resources/list" else self._connect_seconds
        listed, seconds = await self._record.timed(
            self._sessions.list_entries(self._target, method, limit), limit + SLACK
        )
        if not isinstance(listed, Fault):
            return listed, seconds
        if listed.code == METHOD_NOT_FOUND and method == "resources/templates/list":
            # As in the specification's own example: a server without templates need not list them.
            words = "The server lists none, so it is never the source of another server's tool."
            self._record.saw(f"{name}{self._suffix}", words, seconds)
        else:
            self._record.failed(f"{name}{self._suffix}", listed, seconds)
        return None

    @property
    def _connect_seconds(self) -> float:
        return self._terms.limits.connect_seconds

    async def _reads(self, facets: list[Facet]) -> None:
        limit = self._terms.read_seconds
        outcomes = await asyncio.gather(
            *(
                self._record.timed(
                    self._sessions.read_resource(self._target, facet.uri, limit), limit + SLACK
                )
                for facet in facets[:MAX_READS]
            )
        )
        for facet, (result, seconds) in zip(facets, outcomes, strict=False):
            name = f"Facet “{facet.title[:80]}”{self._suffix}"
            if isinstance(result, Fault):
                self._record.failed(name, result, seconds)
                continue
            count, findings = in_read(facet, result, seconds)
            words = (
                "Unavailable." if count is None else f"{count}, within the {limit:g} s of a read."
            )
            self._record.saw(name, words, seconds, findings)
        if len(facets) > MAX_READS:
            more = len(facets) - MAX_READS
            self._record.skipped("More facets", f"{more} more were not read.")


def _size(listed: Listed) -> str:
    entries, pages = len(listed.entries), listed.pages
    return f"{entries} {'entry' if entries == 1 else 'entries'} on {pages} page{'s' * (pages != 1)}"
