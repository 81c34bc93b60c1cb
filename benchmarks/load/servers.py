"""The servers of the connectors under load: one process, whose counts change now and then.

    python -m benchmarks.load.servers --servers 2000 --changes 120 --log FILE

Prints its port; server n is at /n/mcp. A changed count is a number of its own, so that a page that
shows it shows that change. When it is told for the first time, a line of JSON goes to the log:
{"count", "server", "at"}, by the machine's monotonic clock.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import random
import time
from pathlib import Path
from typing import TextIO

from benchmarks import peers

USUAL_COUNT = 3
FIRST_CHANGE = 1000


class Servers:
    def __init__(self, number: int, log: TextIO) -> None:
        self._number, self._log = number, log
        self._counts: dict[int, int] = {}
        self._untold: set[int] = set()

    def answer(self, message: dict, path: str) -> dict:
        """The result of one request to the server at a path."""
        result = peers.answer(message, path)
        if message["method"] == "resources/read":
            is_first = message["params"]["uri"].endswith("/0")
            count = self._tell(int(path.split("/")[1])) if is_first else 0
            result["contents"][0]["text"] = json.dumps({"count": count})
        return result

    def _tell(self, server: int) -> int:
        count = self._counts.get(server, USUAL_COUNT)
        if server in self._untold:
            self._untold.remove(server)
            line = {"count": count, "server": server, "at": time.monotonic()}
            print(json.dumps(line), file=self._log, flush=True)
        return count

    async def change(self, per_minute: float) -> None:
        """Change the first count of some server, again and again."""
        for count in itertools.count(FIRST_CHANGE):
            await asyncio.sleep(60 / per_minute)
            server = random.randrange(self._number)
            self._counts[server] = count
            self._untold.add(server)


async def main(options: argparse.Namespace) -> None:
    with options.log.open("w", encoding="utf-8") as log:
        servers = Servers(options.servers, log)
        listening = await asyncio.start_server(
            lambda reader, writer: peers.serve(
                reader, writer, options.latency_ms / 1000, servers.answer
            ),
            "127.0.0.1",
            0,
            backlog=1000,
        )
        print(listening.sockets[0].getsockname()[1], flush=True)
        await servers.change(options.changes)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--servers", type=int)
    parser.add_argument("--changes", type=float, help="of any count, per minute")
    parser.add_argument("--latency-ms", type=int, default=20)
    parser.add_argument("--log", type=Path)
    with contextlib.suppress(KeyboardInterrupt):
        import uvloop

        uvloop.run(main(parser.parse_args()))
