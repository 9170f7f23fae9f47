"""OpenTelemetry spans around attempts, with ``tracing=True``: they continue the trace in a record's headers.

Outputs, dead letters and records in retry topics get the context of the span in their headers. Only this module imports
OpenTelemetry, and only if a handler has ``tracing=True``.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from penstock._version import __version__
from penstock.app.attempts.record_adapter import RecordAdapter
from penstock.app.handler import Handler
from penstock.core.failures.outcome import Delayed, Done, Failed, Outcome
from penstock.core.records.record import Header, Record
from penstock.core.settings import redacted


def traced(
    handler: Handler, adapter: RecordAdapter, attempt: Callable[[Any, int], Outcome]
) -> Callable[[Any, int], Outcome]:
    tracing = _Tracing(handler, adapter)

    def attempt_traced(record: Any, number: int) -> Outcome:
        with tracing.span([record], [number]) as span:
            return tracing.close(span, attempt(record, number))

    return attempt_traced


def traced_async(
    handler: Handler, adapter: RecordAdapter, attempt: Callable[[Any, int], Awaitable[Outcome]]
) -> Callable[[Any, int], Awaitable[Outcome]]:
    tracing = _Tracing(handler, adapter)

    async def attempt_traced(record: Any, number: int) -> Outcome:
        with tracing.span([record], [number]) as span:
            return tracing.close(span, await attempt(record, number))

    return attempt_traced


def traced_batch(
    handler: Handler, adapter: RecordAdapter, attempt: Callable[[list[Any], list[int]], list[Outcome]]
) -> Callable[[list[Any], list[int]], list[Outcome]]:
    tracing = _Tracing(handler, adapter)

    def attempt_traced(records: list[Any], numbers: list[int]) -> list[Outcome]:
        with tracing.span(records, numbers) as span:
            return [tracing.close(span, outcome) for outcome in attempt(records, numbers)]

    return attempt_traced


def traced_batch_async(
    handler: Handler, adapter: RecordAdapter, attempt: Callable[[list[Any], list[int]], Awaitable[list[Outcome]]]
) -> Callable[[list[Any], list[int]], Awaitable[list[Outcome]]]:
    tracing = _Tracing(handler, adapter)

    async def attempt_traced(records: list[Any], numbers: list[int]) -> list[Outcome]:
        with tracing.span(records, numbers) as span:
            return [tracing.close(span, outcome) for outcome in await attempt(records, numbers)]

    return attempt_traced


class _Tracing:
    """The spans of one handler. A batch has one span, with a link to the trace of each record."""

    def __init__(self, handler: Handler, adapter: RecordAdapter) -> None:
        # Imported here because the package is optional; the declaration of the handler has checked that it is there.
        from opentelemetry import context, propagate, trace  # noqa: PLC0415

        self._contexts, self._propagate, self._trace = context, propagate, trace
        self._tracer = trace.get_tracer("penstock", __version__)
        self._handler = handler
        self._to_record = adapter.to_record

    @contextmanager
    def span(self, records: Sequence[Any], numbers: Sequence[int]) -> Iterator[Any]:
        trace = self._trace
        read = [self._to_record(*each) for each in zip(records, numbers, strict=True)]
        contexts = [self._context(record) for record in read]
        alone = len(read) == 1
        found = [trace.get_current_span(context).get_span_context() for context in contexts]
        # A batch has many traces, so its span continues none of them. A single record's whole context is attached,
        # with its baggage.
        before = self._contexts.attach(contexts[0] if alone else self._contexts.Context())
        try:
            with self._tracer.start_as_current_span(
                f"process {read[0].topic}",
                kind=trace.SpanKind.CONSUMER,
                attributes=self._attributes(read),
                links=[] if alone else [trace.Link(context) for context in found if context.is_valid],
            ) as span:
                yield span
        finally:
            self._contexts.detach(before)

    def close(self, span: Any, outcome: Outcome) -> Outcome:
        """The outcome, with this span's context in the headers of its outputs or failure."""
        trace = self._trace
        if isinstance(outcome, Done):
            if outcome.outputs:
                headers = self._headers()
                replaced = {name for name, _ in headers}
                for output in outcome.outputs:
                    # The input's context may be among the headers that the handler carries over.
                    own = (header for header in output.headers if header[0] not in replaced)
                    output.headers = (*own, *headers)
        elif isinstance(outcome, Failed):
            span.set_attribute("error.type", outcome.error_type)
            span.set_status(trace.Status(trace.StatusCode.ERROR, redacted(f"{outcome.error_type}: {outcome.message}")))
            return replace(outcome, headers=self._headers())
        elif isinstance(outcome, Delayed):
            return replace(outcome, headers=self._headers())
        return outcome

    def _context(self, record: Record) -> Any:
        carrier = {name: (value or b"").decode(errors="replace") for name, value in record.headers}
        return self._propagate.extract(carrier, context=self._contexts.Context())

    def _headers(self) -> tuple[Header, ...]:
        """The context of the current span, as headers."""
        carrier: dict[str, str] = {}
        self._propagate.inject(carrier)
        return tuple((name, value.encode()) for name, value in carrier.items())

    def _attributes(self, records: Sequence[Record]) -> dict[str, str | int]:
        """By OpenTelemetry's conventions for messaging."""
        first = records[0]
        found: dict[str, str | int] = {
            "messaging.system": "kafka",
            "messaging.operation.name": "process",
            "messaging.operation.type": "process",
            "messaging.destination.name": first.topic,
            "messaging.consumer.group.name": self._handler.group,
            "penstock.handler": self._handler.name,
        }
        if len(records) > 1:
            return {**found, "messaging.batch.message_count": len(records)}
        if first.key is not None:
            found["messaging.kafka.message.key"] = first.key.decode(errors="backslashreplace")
        return {
            **found,
            "messaging.destination.partition.id": str(first.partition),
            "messaging.kafka.offset": first.offset,
            "penstock.attempt": first.attempt,
        }
