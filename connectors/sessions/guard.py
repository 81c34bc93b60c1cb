"""Dialling: the address is checked where it is used, so that no name can change in between."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

import httpcore2

from connectors.sessions.networks import NAT64
from connectors.sessions.outward import outward
from connectors.sessions.proxy import Proxy, ProxyRefused, dial_through
from connectors.sessions.sockets import Stream

IPAddress = IPv4Address | IPv6Address
IsAllowed = Callable[[IPAddress], bool]


class BlockedAddress(httpcore2.ConnectError):
    """The name leads only to addresses that connectors may not reach."""


class UnknownName(httpcore2.ConnectError):
    """The name has no address."""


def meanings(address: IPAddress) -> Iterator[IPAddress]:
    """The addresses at which packets to this one may end up, translated ones included."""
    if not isinstance(address, IPv6Address) or address.ipv4_mapped is None:
        yield address
    if isinstance(address, IPv6Address):
        nat64 = IPv4Address(int(address) & 0xFFFFFFFF) if address in NAT64 else None
        yield from filter(None, (address.ipv4_mapped, address.sixtofour, nat64))


def is_reachable(text: str, is_allowed: IsAllowed) -> bool:
    """Whether an address may be dialled, judged by what it means, not by how it is written."""
    address = ip_address(text.partition("%")[0])
    return all(is_allowed(meaning) for meaning in meanings(address))


async def addresses_of(host: str, port: int) -> list[str]:
    """Where a name leads, each address once. Raises: UnknownName."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise UnknownName("The server's name has no address.") from None
    return list(dict.fromkeys(str(info[4][0]) for info in found))


class GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Resolves a name, and dials the addresses that are allowed, one after the other.

    Through the proxy, where the operator named one: it is given what was judged here.
    """

    def __init__(self, is_allowed: IsAllowed) -> None:
        self._is_allowed = is_allowed
        self._proxy = outward().proxy
        self._sockets = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        try:
            async with asyncio.timeout(timeout):
                allowed = await self._allowed(host, port)
        except TimeoutError:
            raise httpcore2.ConnectTimeout from None
        if self._proxy is not None:
            return Stream(await self._through(self._proxy, allowed, port, socket_options))
        # One silent address must not use up the time of the others.
        share = timeout / len(allowed) if timeout is not None else None
        failure: Exception = httpcore2.ConnectError()
        for address in allowed:
            try:
                return Stream(
                    await self._sockets.connect_tcp(
                        address, port, share, local_address, socket_options
                    )
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        raise failure

    async def _through(
        self, proxy: Proxy, addresses: list[str], port: int, options: Iterable[Any] | None
    ) -> httpcore2.AsyncNetworkStream:
        failure: Exception = httpcore2.ConnectError()
        for address in addresses:
            try:
                return await dial_through(proxy, self._sockets, address, port, options)
            except ProxyRefused as error:
                failure = error
        raise failure

    async def connect_unix_socket(self, *_: Any, **__: Any) -> httpcore2.AsyncNetworkStream:
        raise BlockedAddress("A socket file is not an address of a server.")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def _allowed(self, host: str, port: int) -> list[str]:
        addresses = await addresses_of(host, port)
        allowed = [text for text in addresses if is_reachable(text, self._is_allowed)]
        if not allowed:
            raise BlockedAddress(
                f"The address {addresses[0]} is not one that connectors may reach."
            )
        return allowed
