"""Runs one output of a pipeline: starts the streaming query, commits offsets to the group, emits events.

A query that fails for a reason that may pass is started again. Spark then repeats an unfinished batch with exactly the
same records, so sinks recognise a batch that they already have. If a batch has schemas that the plan does not have, the
driver fetches them and builds a new plan first.
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
from penstock.core.scheduling.batch_size import BatchSize
from penstock.errors import PenstockError, ServerError
from penstock.spark.driver.spark_errors import QueryFailure, planning_failure, query_failure
from penstock.spark.internals import JvmError, has_watermark
from penstock.spark.pipelines.batch_barrier import Batch
from penstock.spark.pipelines.lag_report import ends_of, report_lag
from penstock.spark.pipelines.observed_counts import counted
from penstock.spark.pipelines.output_batches import Output, OutputWriter, PipelineBatches
from penstock.spark.pipelines.pipeline_checkpoint import PipelineCheckpoint
from penstock.spark.pipelines.read_sources import first_size
from penstock.spark.pipelines.resume_offsets import Offsets
from penstock.spark.pipelines.sinks.function import BatchFunctionError
from penstock.spark.pipelines.user_function import spark_refused
from penstock.spark.pipelines.writer_schemas import NewSchemasError, SchemaIds, fetch_schemas


class OffsetCommitter(Protocol):
    """Commits the offsets of finished batches."""

    def advance(self, finished: Mapping[TopicPartition, int]) -> None: ...


@dataclass(frozen=True)
class OutputPlan:
    """The plan for one output, made before Spark starts.

    With ``until_caught_up``, ``targets`` are the end offsets at which the run stops; otherwise None.
    """

    handler: Output
    checkpoint: PipelineCheckpoint
    lag: int
    targets: Offsets | None
    group: OffsetCommitter


class PipelineQuery:
    """Call ``start``, then ``advance`` until ``is_over``. ``error`` is set if the query failed.

    Only the driver's loop, one thread, calls these methods. Spark's stream thread runs ``PipelineBatches``.
    """

    def __init__(
        self,
        plan: OutputPlan,
        writer: OutputWriter,
        rows: DataFrame,
        emit: Callable[[events.Event], None],
        *,
        build: Callable[[], DataFrame],
    ) -> None:
        self._plan = plan
        self._output = plan.handler
        self._writer = writer
        self._build = build
        self._rows = counted(rows)
        self._new_schemas: SchemaIds = {}
        self._emit = emit
        self._restarts = Restarts(writer.pipeline.restart)
        self._batches = self._new_batches(first_size(writer.pipeline))
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
                engine="spark",
                group=output.group,
                handler=output.name,
                topics=output.topics,
                lag=self._plan.lag,
                expectations=self._writer.pipeline.expectations,
            )
        )
        self._writer.announce(self._emit)

    def advance(self) -> None:
        """Commit and report batches that finished since the last call; restart or end the query if it is time."""
        if self.is_over:
            return
        if self._query is None:
            self._open_again()
            return
        # Read before the finished batches are taken: a batch that ends in between then still counts as busy.
        busy = self._batches.busy
        self._confirm_batches()
        if not self._query.isActive:
            if isinstance(self._batches.failure, NewSchemasError) and self._deadline is None:
                self._restart_with_schemas(self._batches.failure.schema_ids)
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
        """Make the running batch the last one; ``advance`` ends the query after it."""
        if self._deadline is None and not self.is_over:
            self._emit(events.Stopping(group=self._output.group, handler=self._output.name, reason=reason))
            self._batches.close()
            self._deadline = time.monotonic() + self._output.drain_timeout

    # Start and restart.

    def _open(self) -> None:
        pipeline = self._writer.pipeline
        self._batches = self._new_batches(self._batches.size)
        writer = self._rows.writeStream.foreachBatch(self._batches.run).outputMode(pipeline.output_mode)
        writer = writer.trigger(processingTime=f"{round(pipeline.trigger * 1000)} milliseconds")
        try:
            query = writer.option("checkpointLocation", str(self._plan.checkpoint.folder)).start()
        except AnalysisException as error:
            raise spark_refused(pipeline, error) from error
        self._query = query
        self._batches.attach(query)

    def _new_batches(self, size: BatchSize) -> PipelineBatches:
        return PipelineBatches(self._writer, self._plan.checkpoint, size, has_watermark=has_watermark(self._rows))

    def _open_again(self) -> None:
        if self._deadline is not None:
            self._end(None)
        elif time.monotonic() >= self._due and self._fetch_schemas():
            try:
                self._open()
            except (PySparkException, JvmError) as error:
                self._ended(query_failure(error, self._output))

    def _restart_with_schemas(self, schema_ids: SchemaIds) -> None:
        """Restart the query after the driver has fetched these schemas."""
        self._new_schemas = schema_ids
        self._query = None
        self._unconfirmed.clear()
        self._due = 0.0
        self._report_restart("a batch has records with schemas that were not fetched yet", 0.0)

    def _fetch_schemas(self) -> bool:
        """Fetch new schemas, and return whether all are known. If the registry does not answer, try again later."""
        if not self._new_schemas:
            return True
        try:
            fetch_schemas(self._writer.schemas, self._new_schemas)
        except DependencyUnavailable as unavailable:
            self._due = time.monotonic() + unavailable.seconds
            self._report_restart(str(unavailable), unavailable.seconds)
            return False
        self._new_schemas = {}
        try:
            self._rows = counted(self._build())
        except PenstockError as error:
            self._end(error)
            return False
        return True

    def _ended(self, failure: QueryFailure | None) -> None:
        """Handle the end of the query, after a stop or a failure."""
        if failure is None or self._deadline is not None or not failure.may_pass:
            self._end(None if failure is None else failure.error)
            return
        seconds = self._restarts.failed(random.random())  # noqa: S311 - no secret
        if seconds is None:
            self._end(failure.error)
            return
        self._report_restart(failure.error.problem, seconds)
        self._query = None
        self._batches.size = self._batches.size.after_failure()
        # Spark has not recorded these batches as finished, so it repeats them.
        self._unconfirmed.clear()
        self._due = time.monotonic() + seconds

    def _report_restart(self, reason: str, seconds: float) -> None:
        self._emit(
            events.Restarting(
                group=self._output.group,
                handler=self._output.name,
                attempt=self._restarts.failures,
                reason=reason,
                seconds=round(seconds, 3),
            )
        )

    def _find_failure(self, query: StreamingQuery) -> QueryFailure | None:
        error = self._batches.failure
        if isinstance(error, PenstockError):
            # Of the errors of the driver in a batch, only those of a broker that does not answer, and of a function
            # that writes the batch to another system, may pass.
            is_server_s = type(error) is ServerError and planning_failure(error).may_pass
            return QueryFailure(error, may_pass=is_server_s or isinstance(error, BatchFunctionError))
        if isinstance(error, AnalysisException):  # a sink does not accept the rows, and never will
            return QueryFailure(spark_refused(self._writer.pipeline, error), may_pass=False)
        # After a stop, the closed barrier may end the query, which Spark reports as a failure.
        if error is None and self._deadline is None:
            error = query.exception()
        return None if error is None else query_failure(error, self._output)

    # Progress.

    def _confirm_batches(self) -> None:
        """Commit and report batches that Spark has recorded as finished: a restart does not repeat those."""
        self._unconfirmed.extend(_take_all(self._batches.done))
        checkpoint, confirmed = self._plan.checkpoint, []
        while self._unconfirmed and checkpoint.is_finished(self._unconfirmed[0].number):
            confirmed.append(self._unconfirmed.pop(0))
        if not confirmed:
            return
        self._restarts.progressed()
        self._reached = checkpoint.offsets_of(confirmed[-1].number)
        self._plan.group.advance(self._reached)
        ends = ends_of(self._writer.cluster, self._reached)
        lag = report_lag(self._output.group, self._reached, ends, self._emit)
        for batch in confirmed:
            self._totals += batch.counts
            for event in batch.events:
                self._emit(event)
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
        """Commit the last finished batches, and emit the final events."""
        self.error = error
        if error is not None:
            self._emit(events.Error(group=self._output.group, reason=str(error), fatal=True))
            self.stop("error")
        self._confirm_batches()
        # Commit the checkpoint's offsets once more, in case an earlier commit failed.
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
