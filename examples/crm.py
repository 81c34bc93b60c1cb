"""A CRM of the 2026-07-28 era, built on the Python SDK: facets, a resource template, tools.

It owns `crm://signals/{id}`, so the host reads those URIs from it when another server's tool
cites them (see outbound_2025.py). Its counts move by themselves, one small change every
--drift-seconds (0: never), and `resolve_task` moves one at once.

    python -m examples.crm --port 8901
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from mcp.server.extension import Extension
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
from mcp_types import ToolAnnotations

from examples.serving import argument_parser, serve

FACETS = "ai.nimblebrain/facets"
TASKS_BLOCKED = "crm://facets/tasks-blocked"
REPLIES_RECEIVED = "crm://facets/replies-received"
READ_ONLY = ToolAnnotations(read_only_hint=True)
MAX_BLOCKED = 5

# id: kind, company, what was seen, how many days ago
SIGNALS = {
    "42": ("funding", "Northwind", "Raised a series B of 30 million", 12),
    "43": ("hiring", "Northwind", "Looks for a head of support", 3),
    "51": ("expansion", "Contoso", "Opens an office in Lisbon", 40),
    "7": ("funding", "Fabrikam", "Raised a seed round", 900),
}
OPEN_TASKS = ("Sign the order form", "Answer the security review", "Fix the billing address")


@dataclass
class Crm:
    """What the whole workspace is waiting on; `drift_seconds` apart, one thing changes."""

    drift_seconds: float
    clock: Callable[[], float] = time.monotonic
    blocked: dict[int, str] = field(default_factory=lambda: dict(enumerate(OPEN_TASKS[:2], 1)))
    replies: int = 7
    steps: int = 0
    last_task: int = 2

    def __post_init__(self) -> None:
        self.started = self.clock()

    def catch_up(self) -> None:
        """Make the changes that are due since the last look."""
        if self.drift_seconds > 0:
            due = int((self.clock() - self.started) / self.drift_seconds)
            while self.steps < due:
                self._step()

    def _step(self) -> None:
        self.steps += 1
        if self.steps % 4 == 0 and len(self.blocked) < MAX_BLOCKED:
            self.last_task += 1
            self.blocked[self.last_task] = OPEN_TASKS[self.last_task % len(OPEN_TASKS)]
        else:
            self.replies = self.replies % 12 + 1


class Facets(Extension):
    identifier = FACETS


def signal_of(signal_id: str) -> dict[str, object] | None:
    if signal_id not in SIGNALS:
        return None
    kind, company, text, days = SIGNALS[signal_id]
    observed_at = (datetime.now(UTC) - timedelta(days=days)).date().isoformat()
    return {
        "id": int(signal_id),
        "kind": kind,
        "company": company,
        "text": text,
        "observedAt": observed_at,
    }


def build_server(crm: Crm) -> MCPServer:
    server = MCPServer("example-crm", version="1.0.0", extensions=[Facets()], log_level="WARNING")
    add_facets(server, crm)
    add_signals(server)
    add_tasks(server, crm)
    return server


def add_facets(server: MCPServer, crm: Crm) -> None:
    @server.resource(
        TASKS_BLOCKED,
        name="tasks-blocked",
        title="Tasks blocked",
        mime_type="application/json",
        meta={FACETS: {"level": "critical"}},
    )
    def tasks_blocked() -> dict[str, int]:
        crm.catch_up()
        return {"count": len(crm.blocked)}

    @server.resource(
        REPLIES_RECEIVED,
        name="replies-received",
        title="Replies received",
        mime_type="application/json",
        meta={FACETS: {"level": "info"}},
    )
    def replies_received() -> dict[str, int]:
        crm.catch_up()
        return {"count": crm.replies}


def add_signals(server: MCPServer) -> None:
    @server.resource("crm://signals/{id}", name="signal", mime_type="application/json")
    def signal(id: str) -> dict[str, object]:
        record = signal_of(id)
        if record is None:
            raise ResourceNotFoundError(f"There is no signal {id}.")
        return record

    @server.tool(annotations=READ_ONLY)
    def find_signals(company: str = "", kind: str = "") -> list[dict[str, object]]:
        """Find what was seen about companies. Each signal has its URI, to cite it by."""
        records = [(f"crm://signals/{signal_id}", signal_of(signal_id)) for signal_id in SIGNALS]
        return [
            {"uri": uri, **record}
            for uri, record in records
            if record
            and company.casefold() in str(record["company"]).casefold()
            and kind in ("", record["kind"])
        ]


def add_tasks(server: MCPServer, crm: Crm) -> None:
    @server.tool(annotations=READ_ONLY)
    def blocked_tasks() -> list[dict[str, object]]:
        """List the tasks that wait for somebody."""
        crm.catch_up()
        return [{"id": number, "title": title} for number, title in crm.blocked.items()]

    @server.tool(annotations=ToolAnnotations(destructive_hint=False, idempotent_hint=False))
    async def resolve_task(task_id: int, context: Context) -> str:
        """Resolve a blocked task, which takes one off the workspace's count."""
        title = crm.blocked.pop(task_id, None)
        if title is None:
            raise ToolError(f"No blocked task has the id {task_id}.")
        # Hosts that listen hear of it now; the others at their next read.
        await context.notify_resource_updated(TASKS_BLOCKED)
        return f"Resolved: {title}"


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--drift-seconds", type=float, default=45, help="0: counts stand still")
    options = parser.parse_args()
    serve(build_server(Crm(options.drift_seconds)).streamable_http_app(), options)


if __name__ == "__main__":
    main()
