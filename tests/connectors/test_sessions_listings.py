"""Listings: pages, cursors, caps, and entries that nobody can read."""

from __future__ import annotations

import json

import pytest

from connectors.sessions import FaultKind, Listed
from tests.connectors.session_host import host_of, target_of
from tests.servers.raw import LEGACY, MODERN, Error, Reply, event, raw_server, stream


def entry(number):
    return {"uri": f"test://{number}", "name": str(number)}


def paged(*pages):
    """A handler that gives page after page: (entries, next cursor) by the cursor asked for."""
    by_cursor = dict(pages)

    def handler(request):
        entries, following = by_cursor[request.params.get("cursor")]
        result = {"resources": entries}
        return result if following is ... else {**result, "nextCursor": following}

    return handler


def listed_by(handler, **limits):
    with raw_server() as server, host_of(**limits) as host:
        server.on("resources/list", handler)
        return host.entries(target_of(server.url)), server.count("resources/list")


@pytest.mark.requirement("D4", "F-036")
@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_all_pages_are_read_and_an_empty_cursor_is_a_cursor(revision):
    with raw_server(revisions=(revision,)) as server, host_of() as host:
        server.on(
            "resources/list",
            paged((None, ([entry(1)], "")), ("", ([entry(2)], "c")), ("c", ([entry(3)], ...))),
        )
        listed = host.entries(target_of(server.url))
    assert listed == Listed([entry(1), entry(2), entry(3)], 3)


@pytest.mark.requirement("D4")
def test_a_null_cursor_ends_a_listing():
    assert listed_by(paged((None, ([entry(1)], None))))[0] == Listed([entry(1)], 1)


@pytest.mark.requirement("D4", "F-037")
@pytest.mark.parametrize(
    ("pages", "asked"),
    [
        ([(None, ([entry(1)], "a")), ("a", ([entry(2)], "a"))], 2),
        ([(None, ([entry(1)], "a")), ("a", ([entry(2)], "b")), ("b", ([entry(3)], "a"))], 3),
    ],
)
def test_a_circle_of_cursors_ends_with_what_was_read(pages, asked):
    listed, requests = listed_by(paged(*pages))
    assert requests == asked
    assert listed.entries == [entry(number) for number in range(1, asked + 1)]
    assert listed.cut_short == "the server repeats a page"


def endless(size):
    return lambda request: {
        "resources": [entry(number) for number in range(size)],
        "nextCursor": str(int(request.params.get("cursor", "0")) + 1),
    }


@pytest.mark.requirement("D4", "F-037")
def test_an_endless_listing_stops_at_the_page_cap():
    listed, requests = listed_by(endless(1), max_pages=50)
    assert (requests, listed.pages, len(listed.entries)) == (50, 50, 50)
    assert listed.cut_short == "it has more than 50 pages"


@pytest.mark.requirement("F-037")
def test_an_endless_listing_stops_at_the_entry_cap():
    listed, requests = listed_by(endless(40), max_entries=100)
    assert (requests, len(listed.entries)) == (3, 100)
    assert listed.cut_short == "it has more than 100 entries"


@pytest.mark.requirement("F-037")
def test_one_page_over_the_entry_cap_is_cut():
    listed, _ = listed_by({"resources": [entry(number) for number in range(7)]}, max_entries=5)
    assert (len(listed.entries), listed.cut_short) == (5, "it has more than 5 entries")


@pytest.mark.requirement("F-037")
def test_pages_together_stay_below_the_size_of_one_answer():
    def large(request):
        page = endless(1)(request)
        return page | {"padding": "x" * 500_000}

    listed, requests = listed_by(large, max_body_bytes=2 * 1024 * 1024)
    assert (requests, listed.cut_short) == (5, "it is larger than 2 MiB")


def test_a_cursor_that_is_no_text_ends_a_listing():
    listed, _ = listed_by({"resources": [entry(1)], "nextCursor": 7})
    assert (listed.entries, listed.cut_short) == ([entry(1)], "the server's cursor is not text")


@pytest.mark.requirement("F-038")
def test_a_listing_whose_second_page_fails_failed():
    def handler(request):
        if request.params.get("cursor"):
            return Error(-32603, "no second page")
        return {"resources": [entry(1)], "nextCursor": "2"}

    fault, _ = listed_by(handler)
    assert (fault.kind, fault.message) == (FaultKind.REMOTE, "no second page")


@pytest.mark.parametrize("page", [{}, {"resources": None}, {"resources": {"a": 1}}])
def test_a_listing_without_a_list_failed(page):
    assert listed_by(page)[0].kind == FaultKind.PROTOCOL


@pytest.mark.requirement("F-035", "D5")
def test_entries_are_handed_on_as_sent_however_odd():
    odd = [entry(1), None, 5, {"title": 3}, {"uri": "x:", "_meta": "text"}, entry(2)]
    assert listed_by({"resources": odd})[0].entries == odd


def broken_page(request, bad):
    entries = ", ".join([json.dumps(entry(1)), bad, json.dumps(entry(2))])
    extras = '"resultType": "complete", "ttlMs": 0, "cacheScope": "private"'
    result = f'{{"resources": [{entries}], {extras}}}'
    body = f'{{"jsonrpc": "2.0", "id": {request.message["id"]}, "result": {result}}}'
    return body.encode("latin-1")


@pytest.mark.requirement("F-035")
@pytest.mark.parametrize("as_stream", [False, True])
@pytest.mark.parametrize(
    "bad",
    [
        r'{"uri": "test://x", "title": "half \ud83d"}',
        r'{"uri": "test://x", "\udc00": 1}',
        '{"uri": "test://x", "title": "latin \xe9"}',
        '{"uri": "test://x", "size": 1e400}',
    ],
)
def test_one_entry_that_nobody_can_store_costs_itself_alone(bad, as_stream):
    def handler(request):
        body = broken_page(request, bad)
        return stream(event(body)) if as_stream else Reply(body=body)

    listed, _ = listed_by(handler)
    assert listed == Listed([entry(1), entry(2)], 1, unreadable=1)


def test_an_escaped_pair_of_surrogates_is_text():
    listed, _ = listed_by(
        lambda request: Reply(body=broken_page(request, r'{"title": "\ud83d\ude00"}'))
    )
    assert (listed.entries[1], listed.unreadable) == ({"title": "\U0001f600"}, 0)


@pytest.mark.parametrize("bad", ["NaN", "Infinity", "-Infinity", "1" * 5000])
def test_a_body_that_is_no_json_fails_as_a_whole(bad):
    fault, _ = listed_by(lambda request: Reply(body=broken_page(request, bad)))
    assert fault.kind == FaultKind.PROTOCOL


def test_a_body_may_begin_with_a_byte_order_mark():
    def handler(request):
        return Reply(body=b"\xef\xbb\xbf" + broken_page(request, "{}"))

    assert listed_by(handler)[0].entries == [entry(1), {}, entry(2)]


@pytest.mark.parametrize(
    ("method", "key"),
    [("resources/templates/list", "resourceTemplates"), ("tools/list", "tools")],
)
def test_templates_and_tools_are_listed_alike(method, key):
    with raw_server() as server, host_of() as host:
        server.on(method, {key: [{"name": "a"}, {"name": "b"}]})
        assert host.entries(target_of(server.url), method).entries == [
            {"name": "a"},
            {"name": "b"},
        ]
