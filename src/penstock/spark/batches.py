"""One batch after the other: Spark's stream thread runs them, the driver's loop hears of them.

The stream thread enters here for each batch and does everything that the batch means in one job. Between two batches
lies the border: once it is closed, no further batch begins, and Spark's own ``stop``, which would cancel a batch in
its middle, has nothing left to cancel.
"""

import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from queue import SimpleQueue

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from penstock.app import Handler
from penstock.core.counts import Counts
from penstock.spark.columns import SINK_SCHEMA
from penstock.spark.counts import CountsInSpark
from penstock.spark.task import handle_task


class BorderClosedError(Exception):
    """Raised into Spark in place of a batch: the only way to say that there is to be no other."""


@dataclass(frozen=True)
class Batch:
    """A batch whose outputs are in Kafka; that Spark has noted its end as well is not said here."""

    number: int
    counts: Counts
    seconds: float


class Batches:
    """What Spark calls for each batch. Everything but ``run`` belongs to the driver's loop."""

    def __init__(self, session: SparkSession, handler: Handler, sink: Mapping[str, str]) -> None:
        self._handler = handler
        self._sink = sink
        self._counted = session.sparkContext.accumulator(Counts(), CountsInSpark())
        self._lock = threading.Lock()
        self._closed = False
        self._busy = False
        self.done: SimpleQueue[Batch] = SimpleQueue()
        self.failure: Exception | None = None

    def run(self, source: DataFrame, number: int) -> None:
        began, before = time.monotonic(), self._counted.value
        with self._passing_border():
            try:
                self._write(source)
            except Exception as error:
                self.failure = error
                raise
            self.done.put(Batch(number, self._counted.value - before, time.monotonic() - began))

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

    def _write(self, source: DataFrame) -> None:
        """Outputs and dead letters in one write, each to its own topic; the broker has them all when it returns."""
        handler, count = self._handler, self._counted.add

        # A closure, because Spark takes only a function of one argument; small, because it travels with each task.
        def stage(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return handle_task(handler, batches, count=count)

        source.mapInArrow(stage, SINK_SCHEMA).write.format("kafka").options(**self._sink).save()
