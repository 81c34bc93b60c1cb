"""What counts as a count: the answers of real servers, from the wire to the panel."""

from __future__ import annotations

import pytest

from overview.models import StoredFacet
from tests.overview.factories import entry
from tests.overview.served import DRAFTS, connect, count, publish, read_due, shown, text
from tests.servers.raw import Error, Reply

pytestmark = pytest.mark.django_db(transaction=True)


def failure():
    return StoredFacet.objects.get().failure


VALID = {"3": "3", "3.0": "3", "1e3": "1000", "1e20": "1" + "0" * 20, "9007199254740993": None}


@pytest.mark.requirement("D6", "F-070", "F-072", "F-073")
@pytest.mark.parametrize(("written", "expected"), VALID.items())
def test_a_whole_number_however_written_is_shown_as_plain_digits(acme, server, written, expected):
    server.on("resources/read", text(f'{{"count": {written}}}'))
    connect(acme, server)
    read_due()
    assert shown(acme) == [(expected or written, DRAFTS, "ok")]


NO_COUNTS = ["true", '"3"', "-1", "2.5", "null", "NaN", "1e400"]
INVALID = [
    *(f'{{"count": {value}}}' for value in NO_COUNTS),
    "{}",
    "3",
    "",
    "three",
    '\ufeff{"count": 1}',
    "[" * 100_000,
    '{"count": ' + "9" * 5000 + "}",
]


@pytest.mark.requirement("D6", "F-074", "F-075", "F-076", "F-077", "F-079")
@pytest.mark.parametrize("body", INVALID, ids=range(len(INVALID)))
def test_anything_else_is_a_failed_read_whose_reason_is_kept(acme, server, body):
    server.on("resources/read", text(body))
    connect(acme, server)
    read_due()
    assert shown(acme) == [(None, DRAFTS, "unavailable")]
    assert failure()


BLOB = {"uri": "acme://x", "mimeType": "application/json", "blob": "eyJjb3VudCI6IDN9"}
SHAPES = [
    {"contents": []},
    {},
    {"contents": [BLOB]},
    {"contents": [{**BLOB, "text": '{"count": 3}'}]},
    {"contents": text('{"count": 3}')["contents"] * 2},
    text('{"count": 3}', mimeType="text/plain"),
    {"resultType": "input_required", "inputRequests": {}},
    Error(-32602, "Unknown resource"),
    Reply(200, body=b"<html>"),
    Reply(500, body=b"oops", content_type="text/plain"),
]


@pytest.mark.requirement("D6", "F-081", "F-082", "F-083", "F-084", "F-095")
@pytest.mark.parametrize("answer", SHAPES, ids=range(len(SHAPES)))
def test_a_read_of_another_shape_fails_alone(acme, server, answer):
    publish(server, entry("bad"), entry("good"))

    def read(request):
        return answer if request.params["uri"].endswith("bad") else count(3)

    server.on("resources/read", read)
    connect(acme, server)
    read_due()
    assert shown(acme) == [
        (None, "Bad awaiting review", "unavailable"),
        ("3", "Good awaiting review", "ok"),
    ]


@pytest.mark.requirement("F-085", "F-086")
def test_a_read_without_a_media_type_or_with_another_uri_counts(acme, server):
    server.on("resources/read", {"contents": [{"uri": "other://y", "text": '{"count": 2}'}]})
    connect(acme, server)
    read_due()
    assert shown(acme) == [("2", DRAFTS, "ok")]
