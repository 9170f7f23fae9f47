"""Between Spark's Arrow columns and records: a column at a time, because fields one by one cost more than a handler."""

from collections.abc import Iterable, Iterator, Sequence
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


def to_rows(outgoing: Sequence[Outgoing]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [
            pa.array([each.topic for each in outgoing], pa.string()),
            pa.array([each.key for each in outgoing], pa.binary()),
            pa.array([each.value for each in outgoing], pa.binary()),
            pa.array([each.headers or None for each in outgoing], _HEADERS),
        ],
        schema=_SINK,
    )
