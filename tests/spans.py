"""Collects the spans of a trace in memory. A process can have only one tracer provider, so tests share it."""

from collections.abc import Callable
from functools import cache

from opentelemetry import propagate, trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from penstock import Record


@cache
def _exporter() -> InMemorySpanExporter:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter


class Spans:
    """The spans that end after this object was created."""

    def __init__(self) -> None:
        self._exporter = _exporter()
        self._exporter.clear()

    def produce(self, send: Callable[[dict[str, str]], object], name: str = "send") -> None:
        """Call ``send`` inside a producer's span, with the headers that pass the span on."""
        carrier: dict[str, str] = {}
        with trace.get_tracer("tests").start_as_current_span(name, kind=trace.SpanKind.PRODUCER):
            propagate.inject(carrier)
            send(carrier)

    @property
    def ended(self) -> list[ReadableSpan]:
        return list(self._exporter.get_finished_spans())

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.ended if span.name == name]

    def tree(self) -> dict[str, str | None]:
        """The name of each span with the name of its parent. All must belong to one trace."""
        traces = {span.context.trace_id for span in self.ended if span.context is not None}
        assert len(traces) == 1, f"{len(traces)} traces"
        names = {span.context.span_id: span.name for span in self.ended if span.context is not None}
        return {span.name: None if span.parent is None else names[span.parent.span_id] for span in self.ended}


def carried(record: Record) -> list[tuple[int, int]]:
    """The traces and spans in the headers of a record."""
    found = [(value or b"").decode().split("-") for name, value in record.headers if name == "traceparent"]
    return [(int(trace_id, 16), int(span_id, 16)) for _, trace_id, span_id, _ in found]


def ids(span: ReadableSpan) -> tuple[int, int]:
    assert span.context is not None
    return span.context.trace_id, span.context.span_id
