"""One output of a pipeline on Spark: a streaming query, the group's offsets behind it, and the events about both.

A query that ends before its time, for a reason that another try may mend, starts again. A batch that was planned is
repeated exactly: that is how sinks know one that they have. Where a batch has schemas that the plan does not know, the
plan is made anew with them first.
"""

import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from queue import SimpleQueue
from typing import Protocol

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from penstock.core.failures.outcome import DependencyUnavailable
from penstock.core.failures.restarts import Restarts
from penstock.core.records.record import TopicPartition
from penstock.core.reports import events
from penstock.core.reports.record_counts import Counts
from penstock.errors import PenstockError, ServerError
from penstock.spark.batch_barrier import Batch
from penstock.spark.internals import JvmError
from penstock.spark.lagging import ends_of, report_lag
from penstock.spark.offsets import Offsets
from penstock.spark.pipelines.observed_counts import counted
from penstock.spark.pipelines.output_batches import Outlet, Output, PipelineBatches
from penstock.spark.pipelines.pipeline_checkpoint import PipelineCheckpoint
from penstock.spark.pipelines.read_sources import first_size
from penstock.spark.pipelines.user_function import spark_said
from penstock.spark.pipelines.writer_schemas import NewSchemasError, Stamps, learn_all
from penstock.spark.spark_errors import Failure, planning_failure, query_failure


class Advances(Protocol):
    """Whoever commits what is finished."""

    def advance(self, finished: Mapping[TopicPartition, int]) -> None: ...


@dataclass(frozen=True)
class OutputPlan:
    """All that is decided about one output before Spark starts.

    ``targets`` are the ends to reach where the run is to end when it has caught up, and None where it is not.
    """

    handler: Output
    checkpoint: PipelineCheckpoint
    lag: int
    targets: Offsets | None
    group: Advances


class PipelineQuery:
    """Start it, let it ``advance`` until it ``is_over``; ``error`` says whether it ended because of one.

    All of it belongs to one thread, the driver's loop. Spark's stream thread is met only through the batches.
    """

    def __init__(
        self,
        plan: OutputPlan,
        outlet: Outlet,
        rows: DataFrame,
        emit: Callable[[events.Event], None],
        *,
        build: Callable[[], DataFrame],
    ) -> None:
        self._plan = plan
        self._output = plan.handler
        self._outlet = outlet
        self._build = build
        self._rows = counted(rows)
        self._new_schemas: Stamps = {}
        self._emit = emit
        self._restarts = Restarts(outlet.pipeline.restart)
        self._batches = PipelineBatches(outlet, plan.checkpoint, first_size(outlet.pipeline))
        self._unconfirmed: list[Batch] = []
        self._totals = Counts()
        self._reached: Offsets = {}
        self._query: StreamingQuery | None = None
        self._due = 0.0
        self._deadline: float | None = None
        self._began = time.monotonic()
        self.is_over = False
        self.error: PenstockError | None = None

    def start(self) -> None:
        output = self._output
        self._open()
        self._emit(
            events.Started(
                engine="spark", group=output.group, handler=output.name, topics=output.topics, lag=self._plan.lag
            )
        )
        self._outlet.announce(self._emit)

    def advance(self) -> None:
        """Report and commit what has been finished since the last call, and end or begin what is to end or begin."""
        if self.is_over:
            return
        if self._query is None:
            self._open_again()
            return
        # Asked before the finished batches are taken: one that ends in between is then still seen as busy.
        busy = self._batches.busy
        self._confirm_batches()
        if not self._query.isActive:
            if isinstance(self._batches.failure, NewSchemasError) and self._deadline is None:
                self._meet(self._batches.failure.stamps)
            else:
                self._ended(self._find_failure(self._query))
        elif self._deadline is None:
            if self._targets_reached():
                self.stop("caught up")
        elif not busy and not self._unconfirmed:
            self._query.stop()
            self._end(None)
        elif time.monotonic() > self._deadline:
            self._cancel(self._query)

    def stop(self, reason: str) -> None:
        """Let the batch that is running be the last one; ``advance`` does the rest."""
        if self._deadline is None and not self.is_over:
            self._emit(events.Stopping(group=self._output.group, handler=self._output.name, reason=reason))
            self._batches.close()
            self._deadline = time.monotonic() + self._output.drain_timeout

    # Beginnings.

    def _open(self) -> None:
        pipeline = self._outlet.pipeline
        self._batches = PipelineBatches(self._outlet, self._plan.checkpoint, self._batches.size)
        writer = self._rows.writeStream.foreachBatch(self._batches.run).outputMode(pipeline.output_mode)
        writer = writer.trigger(processingTime=f"{round(pipeline.trigger * 1000)} milliseconds")
        try:
            query = writer.option("checkpointLocation", str(self._plan.checkpoint.folder)).start()
        except AnalysisException as error:
            raise spark_said(pipeline, error) from error
        self._query = query
        self._batches.attach(query)

    def _open_again(self) -> None:
        if self._deadline is not None:
            self._end(None)
        elif time.monotonic() >= self._due and self._learn():
            try:
                self._open()
            except (PySparkException, JvmError) as error:
                self._ended(query_failure(error, self._output))

    def _meet(self, stamps: Stamps) -> None:
        """The registry is asked before the query opens again."""
        self._new_schemas = stamps
        self._query = None
        self._unconfirmed.clear()
        self._due = 0.0
        self._tell_restart("a batch has records with schemas that were not met before", 0.0)

    def _learn(self) -> bool:
        """Whether all schemas are known by now; where the registry is away, it is asked again later."""
        if not self._new_schemas:
            return True
        try:
            learn_all(self._outlet.schemas, self._new_schemas)
        except DependencyUnavailable as away:
            self._due = time.monotonic() + away.seconds
            self._tell_restart(str(away), away.seconds)
            return False
        self._new_schemas = {}
        try:
            self._rows = counted(self._build())
        except PenstockError as error:
            self._end(error)
            return False
        return True

    def _ended(self, failure: Failure | None) -> None:
        """The query runs no more, as it was to, or because it failed."""
        if failure is None or self._deadline is not None or not failure.may_pass:
            self._end(None if failure is None else failure.error)
            return
        seconds = self._restarts.failed(random.random())  # noqa: S311 - no secret
        if seconds is None:
            self._end(failure.error)
            return
        self._tell_restart(failure.error.problem, seconds)
        self._query = None
        self._batches.size = self._batches.size.after_failure()
        # Spark did not note their end, so they come again.
        self._unconfirmed.clear()
        self._due = time.monotonic() + seconds

    def _tell_restart(self, reason: str, seconds: float) -> None:
        self._emit(
            events.Restarting(
                group=self._output.group,
                handler=self._output.name,
                attempt=self._restarts.failures,
                reason=reason,
                seconds=round(seconds, 3),
            )
        )

    def _find_failure(self, query: StreamingQuery) -> Failure | None:
        error = self._batches.failure
        if isinstance(error, PenstockError):
            # Of those that the driver itself meets in a batch, only a broker that does not answer may pass.
            return Failure(error, may_pass=type(error) is ServerError and planning_failure(error).may_pass)
        # Once it was to stop, a query may end by the closed border, which Spark takes for a failure.
        if error is None and self._deadline is None:
            error = query.exception()
        return None if error is None else query_failure(error, self._output)

    # Progress.

    def _confirm_batches(self) -> None:
        """A batch counts once Spark has noted its end: only then will a restart not repeat it."""
        self._unconfirmed.extend(_take_all(self._batches.done))
        checkpoint, confirmed = self._plan.checkpoint, []
        while self._unconfirmed and checkpoint.is_finished(self._unconfirmed[0].number):
            confirmed.append(self._unconfirmed.pop(0))
        if not confirmed:
            return
        self._restarts.progressed()
        self._reached = checkpoint.offsets_of(confirmed[-1].number)
        self._plan.group.advance(self._reached)
        ends = ends_of(self._outlet.cluster, self._reached)
        lag = report_lag(self._output.group, self._reached, ends, self._emit)
        for batch in confirmed:
            self._totals += batch.counts
            self._emit(
                events.BatchFinished(
                    group=self._output.group,
                    handler=self._output.name,
                    batch=batch.number,
                    seconds=round(batch.seconds, 3),
                    lag=lag,
                    next_size=self._batches.size.size,
                    **asdict(batch.counts),
                )
            )
        self._emit(events.Progressed(group=self._output.group, handler=self._output.name, **asdict(self._totals)))

    def _targets_reached(self) -> bool:
        targets = self._plan.targets
        return targets is not None and all(self._reached.get(tp, -1) >= end for tp, end in targets.items())

    # The end.

    def _cancel(self, query: StreamingQuery) -> None:
        reason = (
            f"The batch that pipeline {self._output.name} was running took longer than "
            f"drain_timeout={self._output.drain_timeout:g}s. It was cancelled, and will be repeated."
        )
        self._emit(events.Error(group=self._output.group, reason=reason, fatal=False))
        query.stop()
        self._end(None)

    def _end(self, error: PenstockError | None) -> None:
        """The query runs no more: commit the last of it and say how it was."""
        self.error = error
        if error is not None:
            self._emit(events.Error(group=self._output.group, reason=str(error), fatal=True))
            self.stop("error")
        self._confirm_batches()
        # Once more from the checkpoint itself, for a commit that was refused on the way.
        self._plan.group.advance(self._plan.checkpoint.finished())
        self._emit(
            events.Stopped(
                group=self._output.group,
                handler=self._output.name,
                seconds=round(time.monotonic() - self._began, 3),
                **asdict(self._totals),
            )
        )
        self.is_over = True


def _take_all(queue: "SimpleQueue[Batch]") -> Iterator[Batch]:
    while not queue.empty():
        yield queue.get()
