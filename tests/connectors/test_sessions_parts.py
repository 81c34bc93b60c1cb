"""The pure parts below the sessions."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpcore2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.sessions.event_stream import Event, EventTooLarge, events
from connectors.sessions.faults import Peer, of_transport, retry_after_seconds
from connectors.sessions.jsonrpc import decode, encode, is_clean
from connectors.sessions.values import FaultKind, Target


def parsed(*chunks, max_bytes=1000):
    async def feed():
        for chunk in chunks:
            yield chunk

    async def collect():
        return [event async for event in events(feed(), max_bytes)]

    return asyncio.run(collect())


def test_fields_of_an_event_are_read():
    frame = b"event: note\nid: 7\nretry: 250\ndata: a\ndata:b\nother: x\n\n"
    assert parsed(frame) == [Event(b"a\nb", b"note", b"7", 250)]


@pytest.mark.parametrize("retry", [b"soon", b"-1", b"1e3", b"9" * 30, "٣".encode()])
def test_a_retry_that_is_no_number_is_none(retry):
    assert parsed(b"retry: " + retry + b"\n\n")[0].retry_ms is None


def test_an_event_cut_short_says_so():
    assert parsed(b"data: a\n\ndata: b") == [Event(b"a"), Event(b"b", is_whole=False)]


@given(st.lists(st.sampled_from([b"data: a", b"", b": c", b"id: 1"])), st.data())
def test_events_do_not_depend_on_where_the_chunks_are_cut(lines, data):
    whole = b"".join(line + data.draw(st.sampled_from([b"\n", b"\r\n"])) for line in lines)
    cut = data.draw(st.integers(0, len(whole)))
    assert parsed(whole[:cut], whole[cut:]) == parsed(whole)


@pytest.mark.parametrize("chunks", [[b"data: " + b"x" * 2000], [b"data: x\n"] * 200])
def test_an_event_beyond_its_bound_is_refused(chunks):
    with pytest.raises(EventTooLarge):
        parsed(*chunks)


@given(st.recursive(st.none() | st.integers() | st.text(), st.lists))
def test_what_we_encode_is_read_back_and_clean(value):
    body = decode(encode({"value": value}))
    assert body.value == {"value": value}
    assert is_clean(body.value) or body.is_suspect


@pytest.mark.parametrize("raw", [b"", b"{", b"NaN", b"[" * 100_000, b"9" * 5000, b"'a'", b"\xff"])
def test_what_is_no_json_is_refused(raw):
    with pytest.raises(ValueError):
        decode(raw)


def peer(*values):
    headers = tuple((f"X-{number}", value) for number, value in enumerate(values))
    return Peer(Target(1, 1, "https://host/?key=in-the-address", headers=headers))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        (" a\n\tb\x00\x1b[1m \u202ec\u200b", "a b [1m c"),
        ("key=in-the-address", "key=[secret]"),
        ("Bearer long-secret", "[secret]"),
        ("only long-secret here", "only [secret] here"),
        ("x" * 500, "x" * 199 + "…"),
        ("x" * 190 + "long-secret", "x" * 190 + "[secret]"),
        (None, ""),
        (5, ""),
    ],
)
def test_peer_text_is_one_short_line_without_secrets(text, shown):
    assert peer("Bearer long-secret").text(text) == shown


@pytest.mark.parametrize("data", [{"a": ["long-secret"]}, {"long-secret": 1}, "x" * 20_000])
def test_error_data_with_a_secret_or_without_end_is_left_out(data):
    assert peer("long-secret").data(data) is None
    assert peer("long-secret").data({"uri": "crm://1"}) == {"uri": "crm://1"}


@pytest.mark.parametrize(
    ("header", "seconds"),
    [(None, None), ("7", 7), (" 0 ", 0), ("soon", None), ("-3", None), ("", None)],
)
def test_retry_after_is_seconds(header, seconds):
    assert retry_after_seconds(header) == seconds


def test_retry_after_may_be_a_date():
    in_a_minute = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    assert 50 < (retry_after_seconds(in_a_minute) or 0) <= 60
    assert retry_after_seconds("Wed, 21 Oct 2015 07:28:00 GMT") == 0


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (httpcore2.ConnectTimeout(), FaultKind.TIMEOUT),
        (httpcore2.ReadTimeout(), FaultKind.TIMEOUT),
        (httpcore2.ConnectError(), FaultKind.UNREACHABLE),
        (httpcore2.ReadError(), FaultKind.CLOSED),
        (httpcore2.RemoteProtocolError(), FaultKind.CLOSED),
        (httpcore2.LocalProtocolError("Bearer long-secret"), FaultKind.PROTOCOL),
    ],
)
def test_a_fault_below_http_is_told_in_our_own_words(error, kind):
    fault = of_transport(error)
    assert fault.kind == kind
    assert "long-secret" not in fault.message
