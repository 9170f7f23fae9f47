"""From an engine's records to what a handler takes: its value, its key and its headers, decoded."""

import asyncio
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
"""What a handler gets as ``tx``, and the function that puts records into that transaction as finished."""
Begin = Callable[[], AbstractContextManager[Opened]]


@dataclass(frozen=True)
class RecordAdapter:
    """How an engine's records are read. By default they are Records, and know their attempt themselves.

    ``codec_of`` makes codecs of formats. ``aside`` runs a function that may wait for the network, so that an event loop
    need not wait with it. ``begin`` opens a transaction of the user's database, where progress is kept in one.
    ``passes`` says what a handler may raise that is no outcome.
    """

    to_record: Callable[[Any, int], Record] = lambda record, _attempt: record
    value_of: Callable[[Any], bytes | None] = attrgetter("value")
    offset_of: Callable[[Any], int] = attrgetter("offset")
    key_of: Callable[[Any], bytes | None] = attrgetter("key")
    headers_of: Callable[[Any], Headers] = attrgetter("headers")
    codec_of: CodecOf = no_codecs
    aside: Callable[..., Awaitable[Any]] = asyncio.to_thread
    begin: Begin | None = None
    passes: Callable[[BaseException], bool] = lambda _error: False


class Arguments:
    """How the arguments of one handler come about, and what they may have to wait for.

    Where it takes a value, and perhaps a record, and nothing more, ``decode`` makes the value of what ``source_of``
    takes from the record, or of the record itself where that is None: an attempt calls them by itself, as each call in
    between is felt. Elsewhere ``decode`` is None, and ``of`` makes all.
    """

    def __init__(self, handler: Handler, adapter: RecordAdapter) -> None:
        self.parts = handler.signature.parts
        self._codecs: list[tuple[Codec, Read, Read]] = []
        self._encoder = output_codec(handler, adapter)
        self._to_record = adapter.to_record
        self._reads: dict[str, Read] = {}
        self.source_of: Read | None = adapter.value_of
        self.decode: Read | None = None
        if "value" in self.parts:
            self._read_value(handler, adapter)
        if "key" in self.parts:
            self._reads["key"] = self._read_by(handler, "key", handler.key, adapter)
        if "tx" in self.parts:
            self._reads["tx"] = _nothing  # what it gets there is known when its transaction is open
        if "headers" in self.parts:
            self._reads["headers"] = _headers_reader(handler, adapter)

    def _read_value(self, handler: Handler, adapter: RecordAdapter) -> None:
        read = self._reads["value"] = self._read_by(handler, "value", handler.value, adapter)
        if self._encoder is not None or not set(self.parts) <= {"value", "record"}:
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
        self._get_ready()
        return [
            self._to_record(record, number) if part == "record" else self._reads[part](record) for part in self.parts
        ]

    def of_batch(self, records: Sequence[Any], numbers: Sequence[int]) -> list[list[Any]]:
        """The same for a batch: one list for each parameter."""
        self._get_ready()
        return [
            list(map(self._to_record, records, numbers) if part == "record" else map(self._reads[part], records))
            for part in self.parts
        ]

    def _get_ready(self) -> None:
        # Before the handler is called: what it does would be repeated for as long as its output cannot be encoded.
        if self._encoder is not None and not self._encoder.can_encode:
            self._encoder.get_ready()

    @property
    def only_record(self) -> bool:
        """Whether the handler takes a record, and nothing has to be seen to before."""
        return self.parts == ("record",) and self._encoder is None

    @property
    def may_wait(self) -> bool:
        """Whether there are records for which somebody else has to be asked."""
        return bool(self._codecs) or self._encoder is not None

    def waits(self, record: Any) -> bool:
        """Whether somebody else has to be asked before this record can be handled."""
        if self._encoder is not None and not self._encoder.can_encode:
            return True
        for codec, raw_of, headers_of in self._codecs:
            raw = raw_of(record)
            if raw is not None and not codec.is_known(raw, headers_of(record)):
                return True
        return False


def encoder_of(handler: Handler) -> Callable[[Any], bytes]:
    """From what the handler returns to bytes, where no format is declared for it."""
    how = handler.to_value
    return encode if how is None or isinstance(how, Format) else custom_encoder(how)


def output_codec(handler: Handler, adapter: RecordAdapter) -> Codec | None:
    if not isinstance(handler.to_value, Format):
        return None
    return adapter.codec_of(handler.to_value, registry=handler.registry, field="value", topic=handler.to)


def reader_by(
    how: Any, hint: Any, adapter: RecordAdapter, *, field: Field = "value", registry: Registry | None = None
) -> Read:
    """From a record to its decoded value, or key: by ``how``, as in ``value=``, or by a hint where that is None."""
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
