"""Between Spark's Arrow columns and records: a column at a time, because fields one by one cost more than a handler."""

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

# The columns of Spark's Kafka source that make a record.
SOURCE_COLUMNS = ("topic", "partition", "offset", "key", "value", "headers", "timestamp")

# What the handler stage gives to Spark's Kafka sink.
SINK_SCHEMA = "topic string, key binary, value binary, headers array<struct<key: string, value: binary>>"
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_SINK = pa.schema([("topic", pa.string()), ("key", pa.binary()), ("value", pa.binary()), ("headers", _HEADERS)])
_MICROS_PER_MILLI = 1000

# When what was collected is worth an Arrow batch: as many rows as Spark puts into its own, or much memory.
_FULL_ROWS = 10_000
_FULL_BYTES = 8 * 1024 * 1024

Row: TypeAlias = "tuple[bytes | None, bytes | None, int, int, Portion]"
"""A record on its way to its handler: key, value, offset, and where the rest of it is. Tuples are made in no time."""


class Portion:
    """Some rows of an Arrow batch. Columns that few handlers look at are read when somebody does."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch

    def by_tp(self) -> dict[TopicPartition, list[Row]]:
        """The rows of each partition, in their order."""
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
        if self._one_place is not None:
            return {self._one_place: rows}
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
    def _one_place(self) -> TopicPartition | None:
        """The partition that all rows are of, as they nearly always are of one."""
        topics, partitions = pc.unique(self._batch.column("topic")), pc.unique(self._batch.column("partition"))
        return (topics[0].as_py(), partitions[0].as_py()) if len(topics) == len(partitions) == 1 else None

    @cached_property
    def _tps(self) -> Sequence[TopicPartition]:
        if self._one_place is not None:
            return [self._one_place] * len(self._batch)
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
    """One for each row at least."""
    if column.null_count == len(column):
        return repeat(())
    keys, values = column.flatten().flatten()
    pairs = zip(keys.to_pylist(), values.to_pylist(), strict=True)
    return [tuple(islice(pairs, length or 0)) for length in pc.list_value_length(column).to_pylist()]


def to_rows(batch: pa.RecordBatch) -> Iterator[tuple[str, bytes | None, bytes | None, list[Header] | None]]:
    """What ``SinkColumns`` has collected, one by one: topic, key, value, headers."""
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
    """A stream of Arrow batches, in portions. It holds one batch at a time, which stays in Arrow's form."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = iter(batches)
        self._batch: pa.RecordBatch | None = None
        self._taken = 0
        self.is_empty = False
        """Known only once something more was asked for."""

    @property
    def at_hand(self) -> bool:
        """Whether there are rows that need not be waited for."""
        return self._batch is not None and self._taken < len(self._batch)

    def take(self, limit: int) -> Portion | None:
        """The next rows, at least one and at most so many; None where there are none left."""
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

    It keeps their fields and not the objects, of which thousands at a time would keep the garbage collector busy.
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
        """What was collected; it begins anew."""
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
