"""Runs slices as Spark jobs. Each job has its own thread, which waits for it, so no job waits for another one.

It uses only public API: RDDs where the session has a SparkContext, because such a job needs no plan and starts several
times as fast, and DataFrames through Spark Connect.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from queue import SimpleQueue
from uuid import uuid4

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import SparkSession

from penstock.core.progress.slices import Slice
from penstock.core.records.record import TopicPartition
from penstock.spark.driver.no_control import engine_is_on_the_driver
from penstock.spark.internals import is_connect
from penstock.spark.tasks.run_slices import DriverMembership, run_slices
from penstock.spark.tasks.slice_result import SliceResult
from penstock.spark.tasks.zip_finders import forget_zip_finders

_COLUMN = "result"
_SCHEMA = f"{_COLUMN} binary"


@dataclass(frozen=True)
class JobEnded:
    """The end of a job: a result for each slice, or the error that Spark raised."""

    slices: Sequence[Slice]
    results: Sequence[SliceResult] = ()
    error: Exception | None = None

    @property
    def tps(self) -> set[TopicPartition]:
        return {each.tp for each in self.slices}


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
        if self._context is None:
            self._session.interruptTag(self._tag)
        else:
            self._context.cancelJobsWithTag(self._tag)

    @cached_property
    def _context(self) -> SparkContext | None:
        return None if is_connect(self._session) else self._session.sparkContext

    def _run(self, tasks: Sequence[Sequence[Slice]], membership: DriverMembership) -> None:
        slices = [each for task in tasks for each in task]
        try:
            found = [SliceResult.unpacked(each) for each in self._collected(tasks, membership)]
            self._ended.put(JobEnded(slices, found))
        except Exception as error:  # noqa: BLE001 - the driver's thread decides what follows
            self._ended.put(JobEnded(slices, error=error))

    def _collected(self, tasks: Sequence[Sequence[Slice]], membership: DriverMembership) -> list[bytes]:
        """Run a task for each number of ``range``. The slices are part of the function."""
        run, count = _task(self._packed, tasks, membership), len(tasks)
        if self._context is None:
            self._session.addTag(self._tag)
            rows = self._session.range(0, count, 1, count).mapInArrow(_in_arrow(run), _SCHEMA)
            return [bytes(row[0]) for row in rows.collect()]
        self._context.addJobTag(self._tag)
        return self._context.parallelize(range(count), count).mapPartitions(run).collect()


MakeJobs = Callable[["SimpleQueue[JobEnded]"], SliceJobs]
"""Makes the jobs of a handler, whose ends arrive in this queue."""


RunTasks = Callable[[Iterable[int]], Iterator[bytes]]


def _task(packed: bytes, tasks: Sequence[Sequence[Slice]], membership: DriverMembership) -> RunTasks:
    """Return the function that runs the tasks of these numbers in Python workers. It returns packed results."""

    def run(numbers: Iterable[int]) -> Iterator[bytes]:
        engine_is_on_the_driver()
        for number in numbers:
            yield from [each.packed() for each in run_slices(packed, tasks[number], membership)]
        forget_zip_finders()

    return run


def _in_arrow(run: RunTasks) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function for ``mapInArrow``, which takes only a function of one argument."""

    def run_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            results = list(run(batch.column(0).to_pylist()))
            yield pa.RecordBatch.from_arrays([pa.array(results, pa.binary())], names=[_COLUMN])

    return run_batches
