"""The border between batches: Spark's stream thread runs them, the driver's loop hears of them.

The stream thread enters here for each batch and does everything that the batch means. Between two batches lies the
border: once it is closed, no further batch begins, and Spark's own ``stop``, which would cancel a batch in its middle,
has nothing left to cancel.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from queue import SimpleQueue

from pyspark.sql import DataFrame

from penstock.core.reports.record_counts import Counts


class BarrierClosedError(Exception):
    """Raised into Spark in place of a batch: the only way to say that there is to be no other."""


@dataclass(frozen=True)
class Batch:
    """A batch whose outputs are written; that Spark has noted its end as well is not said here."""

    number: int
    counts: Counts
    seconds: float


class BatchBarrier:
    """What Spark calls for each batch. Everything but ``run`` belongs to the driver's loop."""

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
                counts = self.write(rows, number)
            except Exception as error:
                self.failure = error
                raise
            self.done.put(Batch(number, counts, time.monotonic() - began))

    def write(self, rows: DataFrame, number: int) -> Counts:
        """All that the batch means; what is not done when it returns will not be."""
        raise NotImplementedError

    def close(self) -> None:
        """No batch begins after this; one that has begun goes on."""
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
