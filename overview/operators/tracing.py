"""OpenTelemetry traces of this process, when the standard `OTEL_*` variables ask for them.

The tracer is ours alone and not OpenTelemetry's global one: no library writes into it, so nothing
is exported that is not named in this code. Why so: docs/decisions/tracing.md.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from celery.signals import before_task_publish, task_postrun, task_prerun
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import sync_only_middleware

from workspaces import spans
from workspaces.spans import Span, SpanKind

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from opentelemetry.sdk.trace import TracerProvider

NAME = "workspace-overview"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_ENDPOINT = "/mcp/<slug>"
FLUSH_SECONDS = 1.5
"""How long a stopping process waits for a collector."""

_provider: TracerProvider | None = None


def is_asked_for(environ: Mapping[str, str]) -> bool:
    """Whether the standard variables name a place for traces.

    Source: OpenTelemetry, "Environment Variable Specification".
    """
    if environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    exporter = environ.get("OTEL_TRACES_EXPORTER", "").lower()
    places = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    return exporter != "none" and (bool(exporter) or any(environ.get(each) for each in places))


def start(environ: Mapping[str, str] = os.environ) -> None:
    """Record this process's traces if they are asked for. Called once, when Django is set up.

    Raises: ImproperlyConfigured, in words for the operator.
    """
    if not is_asked_for(environ):
        return
    _refuse_others(environ)
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise ImproperlyConfigured(
            f"OTEL_* variables ask for traces, and the package of “{error.name}” is not installed: "
            "pip install --require-hashes -r requirements-otel.lock. Without these variables, or "
            "with OTEL_SDK_DISABLED=true, the site runs without."
        ) from None
    provider = new_provider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    record(provider)
    atexit.register(flush)


def _refuse_others(environ: Mapping[str, str]) -> None:
    exporter = environ.get("OTEL_TRACES_EXPORTER") or "otlp"
    protocol = (
        environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL")
        or environ.get("OTEL_EXPORTER_OTLP_PROTOCOL")
        or "http/protobuf"
    )
    if exporter.lower() != "otlp" or protocol.lower() != "http/protobuf":
        raise ImproperlyConfigured(
            "Traces are sent by OTLP over HTTP alone: leave OTEL_TRACES_EXPORTER and "
            "OTEL_EXPORTER_OTLP_PROTOCOL away, or set them to otlp and http/protobuf."
        )


def new_provider() -> TracerProvider:
    """A provider that says of the process what the variables say, and else its name alone."""
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider

    resource = Resource({"service.name": NAME}).merge(OTELResourceDetector().detect())
    return TracerProvider(resource=resource, shutdown_on_exit=False)


def record(provider: TracerProvider | None) -> None:
    """Record with this provider; None: no more."""
    global _provider
    _provider = provider
    spans.record_with(None if provider is None else provider.get_tracer(NAME))


def flush() -> None:
    """Send what is still here, when a process ends. A collector that is away does not hold it up:
    the SDK itself would try for 10 s and more."""
    if _provider is not None:
        sending = threading.Thread(target=_provider.force_flush, name="last-spans", daemon=True)
        sending.start()
        sending.join(FLUSH_SECONDS)


@sync_only_middleware
def web_spans(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """One span per request of the site, named by its route: addresses hold links and slugs."""

    def answer(request: HttpRequest) -> HttpResponse:
        with _web_span(request.method or "", request.headers) as web:
            response = get_response(request)
            if (match := request.resolver_match) is not None:
                _note_route(web, request.method or "", f"/{match.route}")
            _note_status(web, response.status_code)
            if request_id := response.get("X-Request-ID"):
                web.set_attribute("request_id", request_id)
        return response

    return answer


async def endpoint_spans(app: Any, scope: dict[str, Any], receive: Any, send: Any) -> None:
    """One span around a request of an outside agent, which Django's middleware does not see."""
    if _provider is None:
        await app(scope, receive, send)
        return
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    with _web_span(scope["method"], headers) as web:
        _note_route(web, scope["method"], _ENDPOINT)

        async def sending(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                _note_status(web, message["status"])
            await send(message)

        await app(scope, receive, sending)


def _web_span(method: str, headers: Mapping[str, str]) -> AbstractContextManager[Span]:
    # Anybody may send a traceparent: it would put strangers' requests into one trace, or have
    # all of them sampled.
    carrier = headers if settings.TRUST_TRACE_CONTEXT else {}
    known = method if method in _METHODS else "_OTHER"
    return spans.span(known, SpanKind.SERVER, {"http.request.method": known}, carrier=carrier)


def _note_route(web: Span, method: str, route: str) -> None:
    web.update_name(f"{method if method in _METHODS else 'HTTP'} {route}")
    web.set_attribute("http.route", route)


def _note_status(web: Span, status: int) -> None:
    web.set_attribute("http.response.status_code", status)
    spans.settle(web, "failed" if status >= 500 else "answered", is_error=status >= 500)


_under_way: dict[str, AbstractContextManager[Span]] = {}
"""The spans of tasks, by id. Each is entered and left in the thread of its task."""


def connect() -> None:
    """Have a task belong to the trace of whatever queued it. Called once, like `start`."""
    before_task_publish.connect(_send_context, weak=False)
    task_prerun.connect(_begin, weak=False)
    task_postrun.connect(_end, weak=False)


def _send_context(headers: dict[str, Any], **_: Any) -> None:
    headers.update(spans.carried())


def _begin(task_id: str, task: Any, **_: Any) -> None:
    if _provider is None:
        return
    given = {name: task.request.get(name) for name in ("traceparent", "tracestate")}
    carrier = {name: value for name, value in given.items() if isinstance(value, str)}
    attributes = {"celery.task": task.name, "celery.task_id": task_id}
    begun = spans.span(task.name, SpanKind.CONSUMER, attributes, carrier=carrier)
    begun.__enter__()
    _under_way[task_id] = begun


def _end(task_id: str, state: str | None = None, **_: Any) -> None:
    begun = _under_way.pop(task_id, None)
    if begun is not None:
        is_done = state == "SUCCESS"
        spans.settle(spans.current(), "done" if is_done else "failed", is_error=not is_done)
        begun.__exit__(None, None, None)
