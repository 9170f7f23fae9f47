"""One streaming query of Spark, and the size of its batches."""

import time

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.core.scheduling.batch_size import BatchSize
from penstock.spark.batches import Batches
from penstock.spark.finished import Finished, without
from penstock.spark.internals import set_limit
from penstock.spark.planning import Plan
from penstock.spark.resume_offsets import Offsets
from penstock.spark.source import read_source, source_options

# How often Spark looks for new records when it has caught up.
_TRIGGER = "200 milliseconds"

# If the size cannot be changed while the query runs, a change by this factor is worth a restart.
_WORTH_A_RESTART = 2


class Stream:
    """Spark's stream thread calls ``_run``, and alone changes the size; the driver's loop uses everything else."""

    def __init__(self, session: SparkSession, plan: Plan, batches: Batches, size: BatchSize) -> None:
        self._plan = plan
        self._batches = batches
        self._reached: Offsets = plan.begin
        self._limit = size.size
        self._query: StreamingQuery | None = None
        self.size = size
        self.outgrown = False
        """Whether batches should be much larger or smaller than this query can make them."""
        self.finished: Finished = plan.finished
        """Records that batches leave out; the driver's loop removes those that the stream has passed."""
        options = source_options(plan.handler, plan.clients, plan.start, size=size.size)
        writer = read_source(session, options).writeStream.foreachBatch(self._run).trigger(processingTime=_TRIGGER)
        self._query = writer.option("checkpointLocation", str(plan.checkpoint.folder)).start()

    @property
    def is_active(self) -> bool:
        return self._query is not None and self._query.isActive

    def exception(self) -> Exception | None:
        return None if self._query is None else self._query.exception()

    def stop(self) -> None:
        """Stop at once, and cancel a running batch."""
        if self._query is not None:
            self._query.stop()

    def _run(self, source: DataFrame, number: int) -> None:
        began = time.monotonic()
        self._batches.run(without(source, self.finished), number)
        self._adapt(number, time.monotonic() - began)

    def _adapt(self, number: int, seconds: float) -> None:
        """Set the size of the next batch. Spark's stream thread calls this, and plans the next batch right after it."""
        before, self._reached = self._reached, self._plan.checkpoint.offsets_of(number)
        offsets = sum(max(0, end - before.get(tp, 0)) for tp, end in self._reached.items())
        self.size = self.size.after(offsets, seconds)
        wanted = self.size.size
        if wanted == self._limit or self._query is None:
            return
        if set_limit(self._query, wanted):
            self._limit = wanted
        else:
            self.outgrown = not self._limit / _WORTH_A_RESTART < wanted < self._limit * _WORTH_A_RESTART
