"""Converts Arrow columns to records and back, a whole column at a time: field by field costs more than a handler."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice, repeat
from operator import itemgetter
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from penstock.app import RecordAdapter
from penstock.codecs import codec_of
from penstock.core.failures.outcome import ProducerRecord
from penstock.core.records.record import Header, Record, TopicPartition

# The columns of Spark's Kafka source that are needed for a record.
SOURCE_COLUMNS = ("topic", "partition", "offset", "key", "value", "headers", "timestamp")

# The rows that tasks return to Spark's Kafka sink.
SINK_SCHEMA = "topic string, key binary, value binary, headers array<struct<key: string, value: binary>>"
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_SINK = pa.schema([("topic", pa.string()), ("key", pa.binary()), ("value", pa.binary()), ("headers", _HEADERS)])
_MICROS_PER_MILLI = 1000

# The size of an Arrow batch of outputs: as many rows as in Spark's own batches, or fewer if they are large.
_FULL_ROWS = 10_000
_FULL_BYTES = 8 * 1024 * 1024

Row: TypeAlias = "tuple[bytes | None, bytes | None, int, int, Portion]"
"""A record before its handler runs: key, value, offset, index, and the portion with its other columns."""


class Portion:
    """Some rows of an Arrow batch. Reads headers and timestamps only if a handler uses them."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch

    def by_tp(self) -> dict[TopicPartition, list[Row]]:
        """Return the rows of each partition, in their order."""
        rows = list(
            zip(
                self._batch.column("key").to_pylist(),
                self._batch.column("value").to_pylist(),
                self._batch.column("offset").to_pylist(),
                range(len(self._batch)),
                repeat(self),
                strict=False,
            )
        )
        if self._only_tp is not None:
            return {self._only_tp: rows}
        found: dict[TopicPartition, list[Row]] = {}
        for tp, row in zip(self._tps, rows, strict=True):
            found.setdefault(tp, []).append(row)
        return found

    def record(self, row: Row, attempt: int) -> Record:
        key, value, offset, index, _ = row
        topic, partition = self._tps[index]
        return Record(topic, partition, offset, key, value, self._headers[index], self._timestamps[index], attempt)

    def headers(self, row: Row) -> tuple[Header, ...]:
        return self._headers[row[3]]

    @cached_property
    def _only_tp(self) -> TopicPartition | None:
        """Return the partition of all rows if there is only one, which is nearly always so; otherwise None."""
        topics, partitions = pc.unique(self._batch.column("topic")), pc.unique(self._batch.column("partition"))
        return (topics[0].as_py(), partitions[0].as_py()) if len(topics) == len(partitions) == 1 else None

    @cached_property
    def _tps(self) -> Sequence[TopicPartition]:
        if self._only_tp is not None:
            return [self._only_tp] * len(self._batch)
        topics, partitions = self._batch.column("topic"), self._batch.column("partition")
        return list(zip(topics.to_pylist(), partitions.to_pylist(), strict=True))

    @cached_property
    def _timestamps(self) -> Sequence[int]:
        """In milliseconds."""
        in_millis = pc.divide(self._batch.column("timestamp").cast(pa.int64()), _MICROS_PER_MILLI)
        return in_millis.to_pylist()  # type: ignore[no-any-return]

    @cached_property
    def _headers(self) -> Sequence[tuple[Header, ...]]:
        return list(islice(_to_headers(self._batch.column("headers")), len(self._batch)))


def _to_headers(column: pa.ListArray) -> Iterable[tuple[Header, ...]]:
    """Return the headers of each row; without any headers, an endless iterator of empty ones."""
    if column.null_count == len(column):
        return repeat(())
    keys, values = column.flatten().flatten()
    pairs = zip(keys.to_pylist(), values.to_pylist(), strict=True)
    return [tuple(islice(pairs, length or 0)) for length in pc.list_value_length(column).to_pylist()]


def to_rows(batch: pa.RecordBatch) -> Iterator[tuple[str, bytes | None, bytes | None, list[Header] | None]]:
    """Return the rows of a batch of ``SinkColumns``: topic, key, value, headers."""
    headers = batch.column("headers")
    columns = (batch.column(name).to_pylist() for name in ("topic", "key", "value"))
    if headers.null_count == len(batch):
        return zip(*columns, repeat(None), strict=False)
    return zip(*columns, map(list, _to_headers(headers)), strict=True)


ROWS = RecordAdapter(
    to_record=lambda row, attempt: row[4].record(row, attempt),
    value_of=itemgetter(1),
    offset_of=itemgetter(2),
    key_of=itemgetter(0),
    headers_of=lambda row: row[4].headers(row),
    codec_of=codec_of,
)


class Intake:
    """Reads Arrow batches in portions. Holds one batch at a time, in Arrow's form."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = iter(batches)
        self._batch: pa.RecordBatch | None = None
        self._taken = 0
        self.is_empty = False
        """Set by the first ``take`` that finds no more rows."""

    @property
    def at_hand(self) -> bool:
        """Whether ``take`` returns rows without waiting."""
        return self._batch is not None and self._taken < len(self._batch)

    def take(self, limit: int) -> Portion | None:
        """Return the next rows, at least one and at most ``limit``; None if there are none left."""
        while self._batch is None or self._taken == len(self._batch):
            self._batch, self._taken = next(self._batches, None), 0
            if self._batch is None:
                self.is_empty = True
                return None
        rows = self._batch.slice(self._taken, limit)
        self._taken += len(rows)
        return Portion(rows)


class SinkColumns:
    """Collects outputs and dead letters for Spark's Kafka sink.

    Keeps their fields instead of the objects: thousands of objects would keep the garbage collector busy.
    """

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._topics: list[str] = []
        self._keys: list[bytes | None] = []
        self._values: list[bytes | None] = []
        self._headers: list[tuple[Header, ...] | None] = []
        self._bytes = 0  # of values

    def __len__(self) -> int:
        return len(self._topics)

    @property
    def is_full(self) -> bool:
        return len(self._topics) >= _FULL_ROWS or self._bytes >= _FULL_BYTES

    def extend(self, outgoing: Sequence[ProducerRecord]) -> None:
        values = [each.value for each in outgoing]
        self._topics += [each.topic for each in outgoing]
        self._keys += [each.key for each in outgoing]
        self._values += values
        self._headers += [each.headers or None for each in outgoing]
        self._bytes += sum(map(len, filter(None, values)))

    def take_batch(self) -> pa.RecordBatch:
        """Return the collected rows, and start an empty batch."""
        batch = pa.RecordBatch.from_arrays(
            [
                pa.array(self._topics, pa.string()),
                pa.array(self._keys, pa.binary()),
                pa.array(self._values, pa.binary()),
                pa.array(self._headers, _HEADERS),
            ],
            schema=_SINK,
        )
        self._clear()
        return batch
