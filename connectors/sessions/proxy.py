"""An outgoing HTTP proxy: it is asked for an address that was judged here, never for a name.

TLS, and the HTTP within, go from end to end: the proxy sees an address and a port.
Source: RFC 9110, section 9.3.6, CONNECT.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import httpcore2

PROXY_SECONDS: Final = 4
"""For its answer, which it gives when it stands connected itself: less than the 5 s that a facet's
read may take, so that it is the proxy which is named."""
MAX_HEAD_BYTES: Final = 16 * 1024
_END: Final = b"\r\n\r\n"


class ProxyFailed(httpcore2.ConnectError):
    """The proxy opened no way. The message names it as the cause, and nothing of its secrets."""


class ProxyRefused(ProxyFailed):
    """It answered, and would not or could not connect to this very address."""


@dataclass(frozen=True, slots=True)
class Proxy:
    """credential: the value of Proxy-Authorization; "" for a proxy that wants none."""

    host: str
    port: int
    credential: str = field(default="", repr=False)


def proxy_at(text: str) -> Proxy:
    """Read `http://[user:password@]host:port`.

    Raises: ValueError, in words without what was given.
    """
    problem = (
        "it has to be http://proxy.example.com:3128, with user:password@ before the name or not"
    )
    try:
        parts = urlsplit(text.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError(problem) from None
    has_more = parts.path.strip("/") or parts.query or parts.fragment
    if parts.scheme != "http" or not host or not port or has_more:
        raise ValueError(problem)
    credential = ""
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        credential = f"Basic {base64.b64encode(pair.encode()).decode()}"
    return Proxy(host, port, credential)


async def dial_through(
    proxy: Proxy,
    sockets: httpcore2.AsyncNetworkBackend,
    address: str,
    port: int,
    socket_options: Iterable[Any] | None = None,
) -> httpcore2.AsyncNetworkStream:
    """A socket to an address, through the proxy.

    Raises: ProxyFailed.
    """
    try:
        async with asyncio.timeout(PROXY_SECONDS):
            stream = await _reached(proxy, sockets, socket_options)
            try:
                await _ask(proxy, stream, address, port)
            except BaseException:
                await stream.aclose()
                raise
            return stream
    except TimeoutError:
        words = f"The outgoing proxy opened no way to the server within {PROXY_SECONDS} s."
        raise ProxyFailed(words) from None


async def _reached(
    proxy: Proxy, sockets: httpcore2.AsyncNetworkBackend, options: Iterable[Any] | None
) -> httpcore2.AsyncNetworkStream:
    try:
        return await sockets.connect_tcp(proxy.host, proxy.port, socket_options=options)
    except httpcore2.NetworkError:
        raise ProxyFailed("The outgoing proxy cannot be reached.") from None


async def _ask(proxy: Proxy, stream: httpcore2.AsyncNetworkStream, address: str, port: int) -> None:
    place = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
    lines = [f"CONNECT {place} HTTP/1.1", f"Host: {place}"]
    if proxy.credential:
        lines.append(f"Proxy-Authorization: {proxy.credential}")
    try:
        await stream.write("\r\n".join([*lines, "", ""]).encode())
        head = await _head(stream)
    except httpcore2.NetworkError:
        raise ProxyFailed("The outgoing proxy dropped the connection.") from None
    status = _status(head)
    if status is None:
        raise ProxyFailed("What was reached as the outgoing proxy does not answer like one.")
    if status == 407:
        wrong = "does not accept the credentials that it is given"
        words = wrong if proxy.credential else "wants credentials"
        raise ProxyFailed(f"The outgoing proxy {words} (HTTP 407).")
    if status in (502, 503, 504):
        words = "does not get through to the server"
        raise ProxyRefused(f"The outgoing proxy {words} (HTTP {status}).")
    if not 200 <= status < 300:
        words = "refused to connect to the server"
        raise ProxyRefused(f"The outgoing proxy {words} (HTTP {status}).")


async def _head(stream: httpcore2.AsyncNetworkStream) -> bytes:
    """What it says first, up to the empty line and at most so much more as came along with it."""
    head = b""
    while _END not in head and len(head) < MAX_HEAD_BYTES:
        more = await stream.read(MAX_HEAD_BYTES - len(head))
        if not more:
            break
        head += more
    return head


def _status(head: bytes) -> int | None:
    """The status of a whole head; None for anything else.

    Nor may there be more behind a 2xx: a server of HTTP or TLS says nothing before we do.
    """
    version, _, rest = head.partition(b" ")
    is_whole = version in (b"HTTP/1.0", b"HTTP/1.1") and _END in head
    status = int(rest[:3]) if is_whole and rest[:3].isdigit() and rest[3:4] in b" \r" else None
    is_open = status is not None and 200 <= status < 300
    return None if is_open and not head.endswith(_END) else status
