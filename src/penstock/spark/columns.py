"""Between Spark's Arrow columns and records: a column at a time, because fields one by one cost more than a handler."""

from collections.abc import Iterable, Iterator
from itertools import islice, repeat

import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.outcome import Outgoing
from penstock.core.record import Header, Record

# The columns of Spark's Kafka source that make a record.
SOURCE_COLUMNS = ("topic", "partition", "offset", "key", "value", "headers", "timestamp")

# What the handler stage gives to Spark's Kafka sink.
SINK_SCHEMA = "topic string, key binary, value binary, headers array<struct<key: string, value: binary>>"
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_SINK = pa.schema([("topic", pa.string()), ("key", pa.binary()), ("value", pa.binary()), ("headers", _HEADERS)])
_MICROS_PER_MILLI = 1000


def to_records(batch: pa.RecordBatch) -> Iterator[Record]:
    """The rows as records, in their order."""
    timestamps = pc.divide(batch.column("timestamp").cast(pa.int64()), _MICROS_PER_MILLI)
    return map(
        Record,
        batch.column("topic").to_pylist(),
        batch.column("partition").to_pylist(),
        batch.column("offset").to_pylist(),
        batch.column("key").to_pylist(),
        batch.column("value").to_pylist(),
        _to_headers(batch.column("headers")),
        timestamps.to_pylist(),
    )


def _to_headers(column: pa.ListArray) -> Iterable[tuple[Header, ...]]:
    if column.null_count == len(column):
        return repeat(())
    keys, values = column.flatten().flatten()
    pairs = zip(keys.to_pylist(), values.to_pylist(), strict=True)
    return [tuple(islice(pairs, length or 0)) for length in pc.list_value_length(column).to_pylist()]


class SinkColumns:
    """Collects outputs and dead letters for Spark's Kafka sink.

    It keeps their fields and not the objects, of which thousands at a time would keep the garbage collector busy.
    """

    def __init__(self) -> None:
        self._topics: list[str] = []
        self._keys: list[bytes | None] = []
        self._values: list[bytes | None] = []
        self._headers: list[tuple[Header, ...] | None] = []

    def __len__(self) -> int:
        return len(self._topics)

    def add(self, outgoing: Outgoing) -> None:
        self._topics.append(outgoing.topic)
        self._keys.append(outgoing.key)
        self._values.append(outgoing.value)
        self._headers.append(outgoing.headers or None)

    def to_batch(self) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(
            [
                pa.array(self._topics, pa.string()),
                pa.array(self._keys, pa.binary()),
                pa.array(self._values, pa.binary()),
                pa.array(self._headers, _HEADERS),
            ],
            schema=_SINK,
        )
