"""The barrier between two batches of a streaming query, where a query can stop without cancelling a batch.

Spark's stream thread calls ``run`` for each batch. The driver's loop takes finished batches from ``done``. Once the
loop has closed the barrier, no further batch starts. So Spark's ``stop``, which cancels a running batch, finds none.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from queue import SimpleQueue

from pyspark.sql import DataFrame

from penstock.core.reports.events import Event
from penstock.core.reports.record_counts import Counts


class BarrierClosedError(Exception):
    """Raised to Spark instead of running a batch: the only way to make Spark run no more batches."""


@dataclass(frozen=True)
class Batch:
    """A batch whose outputs are written. Spark may not have recorded it as finished yet."""

    number: int
    counts: Counts
    seconds: float
    events: tuple[Event, ...] = ()


@dataclass(frozen=True)
class BatchWritten:
    """What became of the records of a batch; ``events`` are reported when Spark has recorded the batch as finished."""

    counts: Counts
    events: tuple[Event, ...] = ()


class BatchBarrier:
    """Runs the batches of one query. Spark's stream thread calls ``run``; the driver's loop uses everything else."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._closed = False
        self._busy = False
        self.done: SimpleQueue[Batch] = SimpleQueue()
        self.failure: Exception | None = None

    def run(self, rows: DataFrame, number: int) -> None:
        began = time.monotonic()
        with self._passing():
            try:
                written = self.write(rows, number)
            except Exception as error:
                self.failure = error
                raise
            self.done.put(Batch(number, written.counts, time.monotonic() - began, written.events))

    def write(self, rows: DataFrame, number: int) -> BatchWritten:
        """Write all outputs of the batch. They must be written when this returns."""
        raise NotImplementedError

    def close(self) -> None:
        """Let no further batch start. A running batch continues."""
        with self._lock:
            self._closed = True

    @property
    def busy(self) -> bool:
        with self._lock:
            return self._busy

    @contextmanager
    def _passing(self) -> Iterator[None]:
        with self._lock:
            if self._closed:
                raise BarrierClosedError
            self._busy = True
        try:
            yield
        finally:
            with self._lock:
                self._busy = False
