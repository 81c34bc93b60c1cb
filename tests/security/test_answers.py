"""What a server's answers may cost: memory, time, and the other servers' share of the one loop."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import time

import pytest

from connectors.protocol.challenges import parse_challenge
from connectors.protocol.tools import is_allowed
from connectors.protocol.uri_templates import BadTemplate, parse
from connectors.sessions.body import decoded
from connectors.sessions.faults import MAX_RETRY_SECONDS, retry_after_seconds
from connectors.sessions.jsonrpc import MAX_NESTING, decode, is_clean

KIB = 1024


class Compressed:
    """A response whose body comes in pieces; how much of it was asked for."""

    def __init__(self, *pieces):
        self.headers = [(b"Content-Encoding", b"gzip")]
        self.pieces, self.sent = pieces, 0

    async def aiter_stream(self):
        for piece in self.pieces:
            self.sent += 1
            yield piece


async def read(response):
    return b"".join([piece async for piece in decoded(response)])


def test_what_follows_a_compressed_answer_is_neither_kept_nor_read():
    """zlib copies all of it with each further piece: 20 MB took 4 s of the one loop."""
    response = Compressed(gzip.compress(b"{}"), *[b"x" * 64 * KIB] * 1000)
    assert asyncio.run(read(response)) == b"{}"
    assert response.sent == 1


@pytest.mark.parametrize("header", ["9" * 400, "9" * 5000, "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_no_retry_after_is_longer_than_a_day(header):
    assert retry_after_seconds(header) == MAX_RETRY_SECONDS


@pytest.mark.parametrize(
    "raw",
    [
        b"[" * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b"9" * 100_000,
        b"NaN",
        b"1e999999999999",
        b'"' + b"\\ud800" * 10 + b'"',
    ],
)
def test_a_json_bomb_is_refused_or_known_for_one(raw):
    try:
        body = decode(raw)
    except ValueError:
        return
    assert body.is_suspect
    assert not is_clean(body.value)


def test_nesting_is_bounded_exactly():
    def nested(levels):
        return decode(b"[" * levels + b"]" * levels).value

    assert is_clean(nested(MAX_NESTING))
    assert not is_clean(nested(MAX_NESTING + 2))


LONG = 200_000
REPEATED = ["a", " ", "\t,", "{", "%", "a/", "-", "\n", "1", 'a="', "\\", "no session ", "\u202e"]


def _parse(text):
    with contextlib.suppress(BadTemplate):
        parse(text)


READERS = {
    "challenge": lambda text: parse_challenge(f'Bearer a="{text}'),
    "template": _parse,
    "retry": retry_after_seconds,
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("piece", REPEATED)
def test_no_pattern_of_ours_takes_long_over_any_text(reader, piece):
    started = time.perf_counter()
    READERS[reader](piece * (LONG // len(piece)))
    assert time.perf_counter() - started < 1


@pytest.mark.parametrize(
    "pattern", ["*a" * 63 + "b", "[a-z]*" * 20 + "b", "*?" * 63 + "b", "*" * 128]
)
def test_a_tokens_pattern_is_matched_in_no_time(pattern):
    started = time.perf_counter()
    is_allowed([pattern] * 50, "a" * 128)
    assert time.perf_counter() - started < 0.5
