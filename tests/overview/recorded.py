"""The spans of this process, as a collector would get them."""

from __future__ import annotations

from contextlib import contextmanager

from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from overview.operators import tracing


class Recorded:
    def __init__(self):
        self.exporter = InMemorySpanExporter()

    def all(self):
        return self.exporter.get_finished_spans()

    def named(self, name):
        return [each for each in self.all() if each.name == name]

    def texts(self):
        """All of each span that leaves the process."""
        return [each.to_json() for each in self.all()]


@contextmanager
def recording():
    found = Recorded()
    provider = tracing.new_provider()
    provider.add_span_processor(SimpleSpanProcessor(found.exporter))
    tracing.record(provider)
    try:
        yield found
    finally:
        tracing.record(None)
        provider.shutdown()
