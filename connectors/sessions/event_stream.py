"""Server-sent events out of a byte stream. Pure. Source: HTML, "Interpreting an event stream"."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """One event. retry_ms: the server's wish for the wait before somebody reconnects.

    is_whole: it ended with a blank line. Else the stream ended first, and it may be a fragment.
    """

    data: bytes
    name: bytes = b"message"
    id: bytes | None = None
    retry_ms: int | None = None
    is_whole: bool = True


class EventTooLarge(ValueError):
    """One event outgrew its bound."""


async def events(chunks: AsyncIterable[bytes], max_bytes: int) -> AsyncIterator[Event]:
    """Parse events as they arrive, each at most `max_bytes` long.

    A last event without its blank line is given too, other than in the standard: servers that
    close the socket right after the answer would lose it (D3).
    Raises: EventTooLarge.
    """
    fields: list[tuple[bytes, bytes]] = []
    size = 0
    async for line in _lines(chunks, max_bytes):
        size += len(line)
        if size > max_bytes:
            raise EventTooLarge
        if line:
            name, _, value = line.partition(b":")
            fields.append((name, value.removeprefix(b" ")))
            continue
        if fields:
            yield _event(fields)
        fields, size = [], 0
    if fields:
        yield _event(fields, is_whole=False)


def _event(fields: list[tuple[bytes, bytes]], is_whole: bool = True) -> Event:
    values = dict(fields)
    retry = values.get(b"retry", b"")
    return Event(
        data=b"\n".join(value for name, value in fields if name == b"data"),
        name=values.get(b"event") or b"message",
        id=values.get(b"id"),
        retry_ms=int(retry) if retry.isdigit() and len(retry) < 10 else None,
        is_whole=is_whole,
    )


async def _lines(chunks: AsyncIterable[bytes], max_bytes: int) -> AsyncIterator[bytes]:
    """Lines that end with CR, LF or CRLF, wherever the chunks are cut."""
    pending = bytearray()
    after_cr = False
    async for chunk in chunks:
        if after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
            after_cr = False
        if not chunk:
            continue
        after_cr = chunk.endswith(b"\r")
        first, *others = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        pending += first
        for line in others:
            yield bytes(pending)
            pending = bytearray(line)
        if len(pending) > max_bytes:
            raise EventTooLarge
    if pending:
        yield bytes(pending)
