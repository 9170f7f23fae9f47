"""Runs slices as Spark jobs. Each job has its own thread, which waits for it, so no job waits for another one.

It uses only the public API that a ``SparkSession`` and a Spark Connect session share.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock.core.progress.slices import Slice
from penstock.spark.driver.no_control import engine_is_on_the_driver
from penstock.spark.tasks.run_slices import DriverMembership, run_slices
from penstock.spark.tasks.slice_result import SliceResult

_COLUMN = "result"
_SCHEMA = f"{_COLUMN} binary"


@dataclass(frozen=True)
class JobEnded:
    """The end of a job: a result for each slice, or the error that Spark raised."""

    slices: Sequence[Slice]
    results: Sequence[SliceResult] = ()
    error: Exception | None = None


class SliceJobs:
    """The driver's thread starts jobs; their ends arrive in ``ended``."""

    def __init__(self, session: SparkSession, packed: bytes, ended: "SimpleQueue[JobEnded]") -> None:
        self._session = session
        self._packed = packed
        self._ended = ended
        self._tag = f"penstock-{uuid4().hex[:12]}"

    def start(self, tasks: Sequence[Sequence[Slice]], membership: DriverMembership) -> None:
        """Start a job with a task for each list of slices."""
        run = threading.Thread(target=self._run, args=(tasks, membership), name="slice-job", daemon=True)
        run.start()

    def cancel(self) -> None:
        """Cancel all jobs that run."""
        self._session.interruptTag(self._tag)

    def _run(self, tasks: Sequence[Sequence[Slice]], membership: DriverMembership) -> None:
        slices = [each for task in tasks for each in task]
        try:
            self._session.addTag(self._tag)
            # One row for each task, which only says the task's number: the slices are part of the function.
            rows = self._session.range(0, len(tasks), 1, len(tasks))
            found = rows.mapInArrow(_stage(self._packed, tasks, membership), _SCHEMA).collect()
            results = [SliceResult.unpacked(bytes(row[0])) for row in found]
            self._ended.put(JobEnded(slices, results))
        except Exception as error:  # noqa: BLE001 - the driver's thread decides what follows
            self._ended.put(JobEnded(slices, error=error))


MakeJobs = Callable[["SimpleQueue[JobEnded]"], SliceJobs]
"""Makes the jobs of a handler, whose ends arrive in this queue."""


def _stage(
    packed: bytes, tasks: Sequence[Sequence[Slice]], membership: DriverMembership
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function that runs in Python workers. Spark takes only a function of one argument."""

    def stage(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        engine_is_on_the_driver()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                results = [each.packed() for each in run_slices(packed, tasks[number], membership)]
                yield pa.RecordBatch.from_arrays([pa.array(results, pa.binary())], names=[_COLUMN])

    return stage
