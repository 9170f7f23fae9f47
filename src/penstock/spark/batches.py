"""One batch after the other: Spark's stream thread runs them, the driver's loop hears of them.

The stream thread enters here for each batch and does everything that the batch means in one job. Between two batches
lies the border: once it is closed, no further batch begins, and Spark's own ``stop``, which would cancel a batch in
its middle, has nothing left to cancel.
"""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from queue import SimpleQueue

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as f

from penstock.app import Handler
from penstock.spark.columns import ROW_SCHEMA, Kind
from penstock.spark.task import handle_task


class BorderClosedError(Exception):
    """Raised into Spark in place of a batch: the only way to say that there is to be no other."""


@dataclass(frozen=True)
class Counts:
    read: int = 0
    written: int = 0
    dead_lettered: int = 0
    skipped: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            self.read + other.read,
            self.written + other.written,
            self.dead_lettered + other.dead_lettered,
            self.skipped + other.skipped,
        )


@dataclass(frozen=True)
class Batch:
    """A batch whose outputs are in Kafka; that Spark has noted its end as well is not said here."""

    number: int
    counts: Counts
    seconds: float


class Batches:
    """What Spark calls for each batch. Everything but ``run`` belongs to the driver's loop."""

    def __init__(self, handler: Handler, sink: Mapping[str, str]) -> None:
        self._handler = handler
        self._sink = sink
        self._lock = threading.Lock()
        self._closed = False
        self._busy = False
        self.done: SimpleQueue[Batch] = SimpleQueue()
        self.failure: Exception | None = None

    def run(self, source: DataFrame, number: int) -> None:
        began = time.monotonic()
        with self._passing_border():
            try:
                counts = _write(_handled(source, self._handler), self._sink)
            except Exception as error:
                self.failure = error
                raise
            self.done.put(Batch(number, counts, time.monotonic() - began))

    def close(self) -> None:
        """No batch begins after this; one that has begun goes on."""
        with self._lock:
            self._closed = True

    @property
    def busy(self) -> bool:
        with self._lock:
            return self._busy

    @contextmanager
    def _passing_border(self) -> Iterator[None]:
        with self._lock:
            if self._closed:
                raise BorderClosedError
            self._busy = True
        try:
            yield
        finally:
            with self._lock:
                self._busy = False


def _handled(source: DataFrame, handler: Handler) -> tuple[DataFrame, Observation]:
    """The rows that the handler stage makes of the source, and the count of what it was given."""
    read = Observation("read")

    # Only a function of one argument counts as a stage for Spark.
    def stage(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return handle_task(handler, batches)

    rows = source.observe(read, f.count(f.lit(1)).alias("records")).mapInArrow(stage, ROW_SCHEMA)
    return rows, read


def _write(handled: tuple[DataFrame, Observation], sink: Mapping[str, str]) -> Counts:
    """Outputs and dead letters in one write, each to its own topic; the broker has acknowledged them when it returns."""
    rows, read = handled
    made = Observation("made")
    observed = rows.observe(
        made, _count(Kind.OUTPUT, "written"), _count(Kind.DEAD_LETTER, "dead_lettered"), _count(Kind.SKIPPED, "skipped")
    )
    to_kafka = observed.where(f.col("topic").isNotNull()).select("topic", "key", "value", "headers")
    to_kafka.write.format("kafka").options(**sink).save()
    return Counts(read=read.get["records"], **made.get)


def _count(kind: Kind, name: str) -> Column:
    return f.count_if(f.col("kind") == int(kind)).alias(name)
