"""The examples as the demo starts them, once for all tests of this folder, and SDK clients."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import pytest
from mcp.client import Client, advertise

from examples.catalog import ExampleServers, Started

FACETS = "ai.nimblebrain/facets"
T = TypeVar("T")


@pytest.fixture(scope="session")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    with ExampleServers(tmp_path_factory.mktemp("examples")) as servers:
        yield servers.start()


@pytest.fixture
def url_of(started: Started) -> Callable[[str], str]:
    def url(slug: str) -> str:
        if slug not in started.urls and not os.environ.get("CI"):
            pytest.skip("; ".join(started.skipped))
        assert slug in started.urls, started.skipped
        return started.urls[slug]

    return url


def talk(url: str, conversation: Callable[[Client], Awaitable[T]], mode: Any = "auto") -> T:
    """Hold one bounded conversation with a server, as a host that claims the facets."""

    async def hold() -> T:
        async with asyncio.timeout(10):
            async with Client(
                url, mode=mode, cache=None, extensions=[advertise(FACETS, {})]
            ) as client:
                return await conversation(client)

    return asyncio.run(hold())


async def facets_of(client: Client) -> dict[str, tuple[str | None, str]]:
    """Give title and level by name, of the entries that the server marks as facets."""
    listed = await client.list_resources()
    return {
        entry.name: (entry.title, entry.meta[FACETS].get("level", "warning"))
        for entry in listed.resources
        if entry.meta and FACETS in entry.meta
    }


async def count_of(client: Client, uri: str) -> object:
    result = await client.read_resource(uri)
    return json.loads(result.contents[0].text)["count"]
