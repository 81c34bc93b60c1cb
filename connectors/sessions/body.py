"""Bodies of unknown size: decoded and counted while they stream."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator

import httpcore2

from connectors.sessions.faults import fault
from connectors.sessions.values import MIB, FaultKind

_PIECE_BYTES = 64 * 1024


async def decoded(response: httpcore2.Response) -> AsyncIterator[bytes]:
    """The body, uncompressed in small pieces: a bomb never exists as a whole (D13).

    Raises: WireFault when it is not compressed as its header says.
    """
    encoding = _encoding_of(response)
    if encoding in ("", "identity"):
        async for chunk in response.aiter_stream():
            yield chunk
        return
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise fault(
            FaultKind.PROTOCOL, "The server compresses its answers in a way nobody asked for."
        )
    inflater = zlib.decompressobj(wbits=47)  # zlib or gzip, told apart by their first bytes
    try:
        async for chunk in response.aiter_stream():
            while chunk:
                yield inflater.decompress(chunk, _PIECE_BYTES)
                chunk = inflater.unconsumed_tail
            if inflater.eof:
                # What follows would be kept and copied with each further piece, without end.
                return
        yield inflater.flush()
    except zlib.error:
        raise fault(FaultKind.PROTOCOL, "The server's compressed answer is broken.") from None


async def bounded(response: httpcore2.Response, max_bytes: int) -> AsyncIterator[bytes]:
    """The decoded body, as long as it stays within the bound.

    Raises: WireFault when it does not.
    """
    size = 0
    async for piece in decoded(response):
        size += len(piece)
        if size > max_bytes:
            raise too_large(max_bytes)
        yield piece


async def read(response: httpcore2.Response, max_bytes: int) -> bytes:
    """The whole decoded body. Raises: WireFault when it is larger than the bound."""
    return b"".join([piece async for piece in bounded(response, max_bytes)])


def too_large(max_bytes: int) -> Exception:
    size = f"{max_bytes // MIB} MiB" if max_bytes >= MIB else f"{max_bytes:,} bytes"
    return fault(FaultKind.TOO_LARGE, f"The server's answer is larger than {size}.")


def _encoding_of(response: httpcore2.Response) -> str:
    for name, value in response.headers:
        if name.lower() == b"content-encoding":
            return value.decode("latin-1").strip().lower()
    return ""
