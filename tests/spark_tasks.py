"""Tasks of the Spark engine as tests drive them: on Arrow batches as Spark hands them over, without Spark."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa

from penstock import App, Retry
from penstock.app import Handler
from penstock.core.reports.record_counts import Counts
from penstock.spark.task import handle_task

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
Row = dict[str, Any]


def source(
    *values: bytes | None,
    first: int = 0,
    key: bytes | None = b"k",
    keys: Sequence[bytes | None] | None = None,
    partition: int = 2,
    headers: Any = None,
) -> pa.RecordBatch:
    """A stretch of orders[2] in the columns of Spark's Kafka source."""
    count = len(values)
    return pa.RecordBatch.from_pydict(
        {
            "topic": pa.array(["orders"] * count, pa.string()),
            "partition": pa.array([partition] * count, pa.int32()),
            "offset": pa.array(range(first, first + count), pa.int64()),
            "key": pa.array([key] * count if keys is None else keys, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "headers": pa.array([headers] * count, HEADERS),
            "timestamp": pa.array([1_700_000_000_123_000] * count, pa.timestamp("us", "UTC")),
        }
    )


def declare(function: Callable[..., Any], **options: Any) -> Handler:
    app = App("shop")
    app.consume("orders", **{"retry": Retry(attempts=1), **options})(function)
    return app.handlers[0]


class Task:
    """Runs a task at once, and remembers what it counted and how long it slept. While it sleeps, its clock moves on."""

    def __init__(self, handler: Handler, *batches: pa.RecordBatch, from_: Iterable[pa.RecordBatch] = ()) -> None:
        self.counts = Counts()
        self.slept: list[float] = []
        self.rows: list[Row] = []
        now = 0.0

        def sleep(seconds: float) -> None:
            nonlocal now
            now += seconds
            self.slept.append(seconds)

        for made in handle_task(handler, batches or from_, count=self._count, clock=lambda: now, sleep=sleep):
            self.rows += made.to_pylist()

    def _count(self, counts: Counts) -> None:
        self.counts += counts


class RealTask(Task):
    """The same by the real clock, as threads and event loops need it."""

    def __init__(self, handler: Handler, *batches: pa.RecordBatch, from_: Iterable[pa.RecordBatch] = ()) -> None:
        self.counts = Counts()
        self.rows = [
            row for made in handle_task(handler, batches or from_, count=self._count) for row in made.to_pylist()
        ]
