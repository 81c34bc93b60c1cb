"""A host's sessions for tests: the real thing on a loop of its own, with short times."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Awaitable, Callable, Iterator
from ipaddress import IPv4Address, IPv6Address
from typing import Any, TypeVar

from connectors.protocol.identifiers import FACETS, RESOURCE_ARGUMENTS
from connectors.sessions import Limits, Sessions, Target
from tests.servers.raw import LEGACY, RawServer, raw_server
from workspaces.background import BackgroundLoop

T = TypeVar("T")

RESOURCE_LIMITS = {"maxChars": 49600, "maxSize": 10485760, "maxUris": 32}
_connectors = itertools.count(1)


def claims(target: Target) -> dict[str, dict[str, Any]]:
    """What the host claims: resource arguments only for a workspace's connectors."""
    if target.is_personal:
        return {FACETS: {}}
    return {FACETS: {}, RESOURCE_ARGUMENTS: RESOURCE_LIMITS}


def loopback_only(address: IPv4Address | IPv6Address) -> bool:
    return address.is_loopback


def target_of(url: str, **fields: Any) -> Target:
    """A target of a new connector."""
    return Target(connector_id=next(_connectors), generation=1, url=url, **fields)


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Host:
    """Sessions, and a way to run their coroutines from a test."""

    def __init__(self, loop: BackgroundLoop, sessions: Sessions, clock: Clock) -> None:
        self.sessions, self.clock, self.loop = sessions, clock, loop

    def run(self, work: Awaitable[T], seconds: float = 20) -> T:
        async def bounded() -> T:
            return await work

        return self.loop.run(bounded(), seconds)

    def connect(self, target: Target, seconds: float = 5) -> Any:
        return self.run(self.sessions.connect(target, seconds))

    def read(self, target: Target, uri: str = "test://one", seconds: float = 5) -> Any:
        return self.run(self.sessions.read_resource(target, uri, seconds))

    def entries(self, target: Target, method: str = "resources/list", seconds: float = 5) -> Any:
        return self.run(self.sessions.list_entries(target, method, seconds))

    def call(self, target: Target, name: str = "send", **options: Any) -> Any:
        options = {"timeout": 5, "is_repeatable": False, **options}
        arguments = options.pop("arguments", {})
        return self.run(self.sessions.call_tool(target, name, arguments, **options))

    def ping(self, target: Target, seconds: float = 5) -> Any:
        return self.run(self.sessions.ping(target, seconds))


@contextlib.contextmanager
def host_of(
    is_allowed: Callable[[IPv4Address | IPv6Address], bool] = loopback_only, **limits: Any
) -> Iterator[Host]:
    """A host until the block ends; every connection is closed then."""
    loop, clock = BackgroundLoop("test-host"), Clock()
    settings = {"connect_seconds": 2, "close_seconds": 0.5, **limits}
    sessions = Sessions(Limits(**settings), claims=claims, is_allowed=is_allowed, clock=clock)
    host = Host(loop, sessions, clock)
    try:
        yield host
    finally:
        host.run(sessions.close())
        loop.close()


def sessionful() -> contextlib.AbstractContextManager[RawServer]:
    """A server of the older revision that gives out session ids."""
    return raw_server(revisions=(LEGACY,), keeps_sessions=True)
