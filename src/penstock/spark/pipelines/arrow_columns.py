"""Converts Arrow columns to rows for Kafka and back, a whole column at a time."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, repeat

import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.failures.outcome import ProducerRecord
from penstock.core.records.record import Header
from penstock.kafka.client.transactions import Row

# The columns of Spark's Kafka source that are needed for a record.
SOURCE_COLUMNS = ("topic", "partition", "offset", "key", "value", "headers", "timestamp")

# The rows that tasks return to Spark's Kafka sink.
SINK_SCHEMA = "topic string, key binary, value binary, headers array<struct<key: string, value: binary>>"
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_SINK = pa.schema([("topic", pa.string()), ("key", pa.binary()), ("value", pa.binary()), ("headers", _HEADERS)])

# The size of an Arrow batch of outputs: as many rows as in Spark's own batches, or fewer if they are large.
_FULL_ROWS = 10_000
_FULL_BYTES = 8 * 1024 * 1024


def _to_headers(column: pa.ListArray) -> Iterable[tuple[Header, ...]]:
    """Return the headers of each row; without any headers, an endless iterator of empty ones."""
    if column.null_count == len(column):
        return repeat(())
    keys, values = column.flatten().flatten()
    pairs = zip(keys.to_pylist(), values.to_pylist(), strict=True)
    return [tuple(islice(pairs, length or 0)) for length in pc.list_value_length(column).to_pylist()]


def to_rows(batch: pa.RecordBatch) -> Iterator[Row]:
    """Return the rows of a batch of ``SinkColumns``."""
    headers = batch.column("headers")
    columns = (batch.column(name).to_pylist() for name in ("topic", "key", "value"))
    if headers.null_count == len(batch):
        return zip(*columns, repeat(None), repeat(-1), repeat(0), strict=False)
    anywhere, now = repeat(-1, len(batch)), repeat(0, len(batch))
    return zip(*columns, map(list, _to_headers(headers)), anywhere, now, strict=True)


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
