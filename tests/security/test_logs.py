"""No stranger's text forges a line of the log, and no log knows an address that nobody has."""

from __future__ import annotations

import io
import logging

import pytest
import structlog
from django.conf import settings as configured
from django_structlog import signals

from overview.logs import on_one_line

HOSTILE = [
    "a\n2026-01-01T00:00:00Z [info     ] request_finished code=200",
    "a\r\nb",
    "a\x1b[2J\x1b]0;title\x07",
    "a\u202egnihtyreve\u2066",
    "a\u2028b\u2029c\x85d\x0be\x0cf",
    "a\x00b\x9bc",
    "a\ud800b",
]


@pytest.fixture
def text_log():
    """A logger that writes what the embedded default would write to a terminal."""
    written = io.StringIO()
    formatter = configured.LOGGING["formatters"]["line"]
    handler = logging.StreamHandler(written)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                on_one_line,
                structlog.dev.ConsoleRenderer(
                    colors=False, exception_formatter=structlog.dev.plain_traceback
                ),
            ],
            foreign_pre_chain=formatter["foreign_pre_chain"],
        )
    )
    logger = logging.getLogger("tests.security.text")
    logger.propagate = False
    logger.addHandler(handler)
    yield logger, written
    logger.removeHandler(handler)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_line_of_text_stays_one_line_that_reads_as_it_stands(text_log, hostile):
    logger, written = text_log
    logger.warning("No tool %s", hostile, extra={"tool": hostile, "more": [hostile, {hostile: 1}]})
    said = written.getvalue()
    assert len(said.splitlines()) == 1
    assert said.removesuffix("\n").isprintable()


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_traceback_is_indented_whatever_its_message_says(text_log, hostile):
    logger, written = text_log
    try:
        raise RuntimeError(hostile)
    except RuntimeError:
        logger.exception("It failed")
    first, *others = written.getvalue().removesuffix("\n").split("\n")
    assert "It failed" in first
    assert others
    for line in others:
        assert line.startswith("    ")
        assert line.isprintable()


def test_a_request_is_logged_with_who_connected_and_not_with_whom_it_names(alice_client):
    bound = []

    def note(**_):
        bound.append(structlog.contextvars.get_contextvars())

    signals.bind_extra_request_finished_metadata.connect(note)
    named = {"x-forwarded-for": "8.8.8.8", "x-real-ip": "8.8.8.8", "x-request-id": "mine"}
    alice_client.get("/w/acme/", headers={**named, "x-correlation-id": "mine"})
    (found,) = bound
    assert found["ip"] == "127.0.0.1"
    assert "mine" not in str(found)
