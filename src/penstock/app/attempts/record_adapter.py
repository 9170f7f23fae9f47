"""From the records of an engine to the arguments of a handler: decoded value, key and headers."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from penstock.app.decoders import converted_hint, decoder, header_decoders
from penstock.app.handler import Handler
from penstock.core.failures.outcome import Undecodable
from penstock.core.records.record import Record
from penstock.core.settings import Registry
from penstock.serde import (
    Codec,
    CodecOf,
    Field,
    Format,
    Headers,
    converter_for,
    custom_encoder,
    encode,
    no_codecs,
    null_reason,
    takes_null,
)

Read = Callable[[Any], Any]
Opened = tuple[Any, Callable[[Sequence[Any]], None]]
"""The ``tx`` of a handler, and the function that marks records as finished in that transaction."""
Remember = Callable[..., bool]
"""Remembers an id in an open transaction; False if it was handled before (``attempts/deduplication.py``)."""
Begin = Callable[[], AbstractContextManager[Opened]]


@dataclass(frozen=True)
class RecordAdapter:
    """How to read the records of an engine. The default reads ``Record`` objects, which have their attempt number.

    ``codec_of`` makes the codec of a format. ``run_blocking`` runs a function that may wait for the network on another
    thread, so that the event loop does not block. ``begin`` opens a transaction in the user's database, if progress is
    kept there. ``reraises`` picks the errors of a handler that are raised instead of becoming a failure. ``clock`` is
    for limits, ``wall_clock`` for times that people and other processes write. ``ids_of`` (by the name of the
    handler) and ``remember`` are for ``dedupe=``, without and with ``tx``.
    """

    to_record: Callable[[Any, int], Record] = lambda record, _attempt: record
    value_of: Callable[[Any], bytes | None] = attrgetter("value")
    offset_of: Callable[[Any], int] = attrgetter("offset")
    key_of: Callable[[Any], bytes | None] = attrgetter("key")
    headers_of: Callable[[Any], Headers] = attrgetter("headers")
    codec_of: CodecOf = no_codecs
    run_blocking: Callable[..., Awaitable[Any]] = asyncio.to_thread
    begin: Begin | None = None
    reraises: Callable[[BaseException], bool] = lambda _error: False
    topic_of: Callable[[Any], str] = attrgetter("topic")
    clock: Callable[[], float] = time.monotonic
    wall_clock: Callable[[], float] = time.time
    ids_of: Callable[[str], Any] | None = None
    remember: Remember | None = None


class Arguments:
    """Makes the arguments of one handler, and knows whether that asks the schema registry.

    For a handler that takes only a value, or a value and a record, ``decode`` makes the value from
    ``source_of(record)``, or from the record itself if ``source_of`` is None. An attempt calls these two directly,
    because each further call costs measurable time. For other handlers ``decode`` is None, and ``of`` makes all
    arguments.
    """

    def __init__(self, handler: Handler, adapter: RecordAdapter) -> None:
        self.parts = handler.signature.parts
        self._codecs: list[tuple[Codec, Read, Read]] = []
        self._encoders = [*output_codecs(handler, adapter).values()]
        self._to_record = adapter.to_record
        self._reads: dict[str, Read] = {}
        self.source_of: Read | None = adapter.value_of
        self.decode: Read | None = None
        if "value" in self.parts:
            self._read_value(handler, adapter)
        if "key" in self.parts:
            self._reads["key"] = self._read_by(handler, "key", handler.key, adapter)
        if "tx" in self.parts:
            self._reads["tx"] = _nothing  # the attempt fills it in when the transaction is open
        if "headers" in self.parts:
            self._reads["headers"] = _headers_reader(handler, adapter)

    def _read_value(self, handler: Handler, adapter: RecordAdapter) -> None:
        read = self._reads["value"] = self._read_by(handler, "value", handler.value, adapter)
        if self._encoders or not set(self.parts) <= {"value", "record"}:
            return
        if isinstance(handler.value, Format):
            self.source_of, self.decode = None, read
        else:
            self.decode = decoder(handler.value, handler.signature.hints["value"], "value")

    def _read_by(self, handler: Handler, field: Field, how: Any, adapter: RecordAdapter) -> Read:
        if isinstance(how, Format):
            codec = adapter.codec_of(how, registry=handler.registry, field=field)
            self._codecs.append((codec, _raw_of(adapter, field), adapter.headers_of))
        return reader_by(how, handler.signature.hints[field], adapter, field=field, registry=handler.registry)

    def of(self, record: Any, number: int) -> list[Any]:
        """One argument for each parameter."""
        self._prepare_encoder()
        return [
            self._to_record(record, number) if part == "record" else self._reads[part](record) for part in self.parts
        ]

    def of_batch(self, records: Sequence[Any], numbers: Sequence[int]) -> list[list[Any]]:
        """Like ``of`` for a batch: one list for each parameter."""
        self._prepare_encoder()
        return [
            list(map(self._to_record, records, numbers) if part == "record" else map(self._reads[part], records))
            for part in self.parts
        ]

    def _prepare_encoder(self) -> None:
        # Before the handler runs: if the registry does not answer after that, the handler runs again at each attempt.
        for encoder in self._encoders:
            if not encoder.can_encode:
                encoder.get_ready()

    @property
    def only_record(self) -> bool:
        """Whether the handler takes only the record, and no output codec has to be prepared."""
        return self.parts == ("record",) and not self._encoders

    @property
    def has_codecs(self) -> bool:
        """Whether some records may need the schema registry."""
        return bool(self._codecs or self._encoders)

    def may_block(self, record: Any) -> bool:
        """Whether decoding this record, or encoding its output, asks the schema registry."""
        if not all(encoder.can_encode for encoder in self._encoders):
            return True
        for codec, raw_of, headers_of in self._codecs:
            raw = raw_of(record)
            if raw is not None and not codec.is_known(raw, headers_of(record)):
                return True
        return False


def encoder_of(handler: Handler) -> Callable[[Any], bytes]:
    """The function from a return value to bytes, for handlers without an output format."""
    how = handler.to_value
    return encode if how is None or isinstance(how, Format) else custom_encoder(how)


def output_codecs(handler: Handler, adapter: RecordAdapter) -> dict[str, Codec]:
    """The codec for each declared output topic, if the handler encodes with a format."""
    topics = handler.output_topics if isinstance(handler.to_value, Format) else ()
    return {topic: output_codec(handler, adapter, topic) for topic in topics}


def output_codec(handler: Handler, adapter: RecordAdapter, topic: str) -> Codec:
    return adapter.codec_of(handler.to_value, registry=handler.registry, field="value", topic=topic)


def reader_by(
    how: Any, hint: Any, adapter: RecordAdapter, *, field: Field = "value", registry: Registry | None = None
) -> Read:
    """The function from a record to its decoded value or key. ``how`` is as in ``value=``; None means by type hint."""
    raw_of, headers_of = _raw_of(adapter, field), adapter.headers_of
    if not isinstance(how, Format):
        by_hint = decoder(how, hint, field)
        return lambda record: by_hint(raw_of(record))
    codec, takes = adapter.codec_of(how, registry=registry, field=field), takes_null(hint)

    def null() -> None:
        if not takes:
            raise Undecodable(null_reason(field))

    return codec.reader(raw_of, headers_of, null=null, convert=converter_for(converted_hint(how, hint)))


def _headers_reader(handler: Handler, adapter: RecordAdapter) -> Read:
    by_name, other = header_decoders(handler.headers, handler.signature.hints["headers"])
    headers_of = adapter.headers_of

    def read(record: Any) -> dict[str, Any]:
        found = {}
        for name, raw in headers_of(record) or ():
            try:
                found[name] = by_name.get(name, other)(raw)
            except Undecodable as error:
                raise Undecodable(f"the header {name!r}: {error}") from error
        return found

    return read


def _raw_of(adapter: RecordAdapter, field: Field) -> Read:
    return adapter.value_of if field == "value" else adapter.key_of


def _nothing(_record: Any) -> None:
    return None
