"""Spans of traces, for an operator who wants them; for all others each costs one comparison.

Only these go to the operator's collector: the spans of libraries carry addresses, messages of
errors and the trace context of strangers. What is put into one is a number, an id of ours or a word
of ours, never what a person, an agent or a server sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opentelemetry.context import Context
from opentelemetry.trace import INVALID_SPAN, Span, SpanKind, StatusCode, Tracer, get_current_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

__all__ = ["Span", "SpanKind", "carried", "current", "record_with", "settle", "span", "trace_id"]

_W3C = TraceContextTextMapPropagator()
_tracer: Tracer | None = None


def record_with(tracer: Tracer | None) -> None:
    """Have the spans of this process recorded from now on; None: not any more."""
    global _tracer
    _tracer = tracer


@contextmanager
def span(
    name: str,
    kind: SpanKind = SpanKind.INTERNAL,
    attributes: Mapping[str, str | int] | None = None,
    *,
    carrier: Mapping[str, str] | None = None,
) -> Iterator[Span]:
    """A span around what is done in it, below the one that is current.

    carrier: W3C trace context of somebody trusted, to go on with instead; without any in it a new
    trace begins. Of an exception only the type is recorded.
    """
    if _tracer is None:
        yield INVALID_SPAN
        return
    parent = None if carrier is None else _W3C.extract(carrier, Context())
    with _tracer.start_as_current_span(
        name, parent, kind, attributes, record_exception=False, set_status_on_exception=False
    ) as begun:
        try:
            yield begun
        except BaseException as error:
            settle(begun, "raised", is_error=True)
            begun.set_attribute("error.type", type(error).__name__)
            raise


def settle(span: Span, outcome: str, *, is_error: bool = False) -> None:
    """Say what came of it. outcome: a word of ours."""
    span.set_attribute("outcome", outcome)
    if is_error:
        span.set_status(StatusCode.ERROR)


def carried() -> dict[str, str]:
    """The trace context of the current span, for whoever goes on with it; empty without one."""
    carrier: dict[str, str] = {}
    if _tracer is not None:
        _W3C.inject(carrier)
    return carrier


def current() -> Span:
    """The span that is around; one that records nothing without."""
    return get_current_span()


def trace_id() -> str | None:
    """Of the current span, as collectors show it."""
    current = get_current_span().get_span_context()
    return f"{current.trace_id:032x}" if _tracer is not None and current.is_valid else None
