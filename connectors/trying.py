"""Calling a tool as oneself, on the very way that an outside client's call takes.

Shell: from a thread of the site onto the endpoint's async code and back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from asgiref.sync import async_to_sync

from connectors.endpoint.calls import Call, call_connector, new_trace, refuse, why_refused
from connectors.endpoint.catalogue import Catalogue, Entry, Offer, OfferedTool
from connectors.endpoint.host_tools import call_host_tool, host_tools
from connectors.endpoint.results import fault_result
from connectors.protocol.resource_arguments import Declaration
from connectors.protocol.text import is_encodable, shorten
from connectors.runtime import let_go_of_database
from connectors.sessions import Fault
from connectors.tool_results import Shown, failed, showable, shown, text_only, written
from connectors.traces import Trace, recorder

FLUSH_SECONDS: Final = 2.0
MAX_DESCRIPTION_CHARS: Final = 2_000


@dataclass(frozen=True, slots=True)
class ToolPage:
    """One tool as people see it. offer, tool: None for the host's own."""

    name: str
    entry: Entry
    offer: Offer | None = None
    tool: OfferedTool | None = None

    @property
    def title(self) -> str:
        hints = self.entry.get("annotations")
        named = self.entry.get("title") or (hints.get("title") if isinstance(hints, dict) else None)
        return shorten(named) if isinstance(named, str) else ""

    @property
    def description(self) -> str:
        text = self.entry.get("description")
        return showable(text, MAX_DESCRIPTION_CHARS) if isinstance(text, str) else ""

    @property
    def schema(self) -> object:
        return self.entry.get("inputSchema")

    @property
    def written_schema(self) -> str:
        return showable(written(self.schema))

    @property
    def declaration(self) -> list[tuple[str, list[str]]]:
        declared: Declaration = self.tool.declaration if self.tool else {}
        return [(shorten(name, 100), sorted(schemes)) for name, schemes in declared.items()]

    @property
    def is_read_only(self) -> bool:
        return _hint(self.entry, "readOnlyHint") is True

    @property
    def may_destroy(self) -> bool:
        """Whether it may change or delete what is there: so unless its server says otherwise."""
        return not self.is_read_only and _hint(self.entry, "destructiveHint") is not False

    @property
    def why_not(self) -> str:
        """Why it cannot be called now; empty if it can."""
        if self.offer is None or self.offer.is_ready:
            return ""
        return f"{self.offer.name} is not ready: {self.offer.status_label}."


def _hint(entry: Mapping[str, Any], name: str) -> object:
    hints = entry.get("annotations")
    return hints.get(name) if isinstance(hints, dict) else None


def tools_on_offer(catalogue: Catalogue) -> list[tuple[Offer | None, list[ToolPage]]]:
    """The tools that the member can call now, by source: the host's own last."""
    by_offer: list[tuple[Offer | None, list[ToolPage]]] = [
        (
            offer,
            [
                ToolPage(each.public_name, each.entry, offer, each)
                for each in offer.tools.values()
                # A name that no address can carry is none that MCP allows.
                if is_encodable(each.public_name)
            ],
        )
        for offer in catalogue.offers
        if offer.is_ready
    ]
    own = [ToolPage(entry["name"], entry) for entry in host_tools(catalogue)]
    return [*by_offer, (None, own)]


def tool_page(catalogue: Catalogue, name: str) -> ToolPage | None:
    """A tool by its public name, also of a connector that is not ready; None for no such tool."""
    for entry in host_tools(catalogue):
        if entry["name"] == name:
            return ToolPage(name, entry)
    found = catalogue.tool(name)
    return ToolPage(name, found[1].entry, *found) if found else None


def call_tool(
    catalogue: Catalogue, page: ToolPage, arguments: dict[str, Any]
) -> tuple[Shown, Trace]:
    """Call a tool and wait for its answer: at most as long as an outside client would.

    The trace is written when this returns, unless the database is slow. The answer is shown and
    kept nowhere.
    """
    trace = new_trace(catalogue.caller, page.name)
    let_go_of_database()
    answer = async_to_sync(_call)(catalogue, page, arguments, trace)
    recorder.flush(FLUSH_SECONDS)
    return answer, trace


async def _call(
    catalogue: Catalogue, page: ToolPage, arguments: dict[str, Any], trace: Trace
) -> Shown:
    if page.offer is None or page.tool is None:
        answered = await call_host_tool(catalogue, page.name, arguments, trace)
        if answered is None:
            return failed("The workspace no longer offers this tool.")
        return text_only(answered.output, is_error=answered.is_error)
    if reason := why_refused(catalogue, page.offer, page.tool):
        return shown(refuse(trace, reason, page.offer))
    outcome = await call_connector(catalogue, page.offer, page.tool, Call(arguments), trace)
    if isinstance(outcome, Fault):
        return shown(fault_result(page.offer.name, outcome))
    return shown(outcome)
