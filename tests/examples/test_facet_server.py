"""The example of the README works as it stands there."""

from __future__ import annotations

import socket
import subprocess
import sys
import time

from mcp.client import Client

from examples.catalog import ROOT

from .conftest import count_of, facets_of, talk


def test_the_author_example_publishes_one_facet() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with subprocess.Popen(
        [sys.executable, str(ROOT / "examples/facet_server.py"), str(port)],
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            wait_for(port)

            async def read(client: Client) -> tuple[object, object]:
                count = await count_of(client, "acme://facets/drafts-awaiting-review")
                return await facets_of(client), count

            facets, count = talk(f"http://127.0.0.1:{port}/mcp", read)
        finally:
            process.terminate()
            process.wait(5)
    assert facets == {"drafts-awaiting-review": ("Drafts awaiting review", "warning")}
    assert count == 3


def wait_for(port: int) -> None:
    deadline = time.monotonic() + 10
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), 1).close()
        except ConnectionRefusedError:
            assert time.monotonic() < deadline
