"""Writes the batches of a pipeline's output: rows to the sinks, unreadable records to the dead-letter topic."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.app import Pipeline, Table, Topic
from penstock.app.pipelines import BatchId
from penstock.core.records.record import TopicPartition
from penstock.core.reports.events import Error, Event, ExpectationFailed, LateRows, SinkOpened, TableMaintained
from penstock.core.reports.record_counts import Counts
from penstock.core.scheduling.batch_size import BatchSize
from penstock.kafka import Cluster
from penstock.spark.driver.spark_errors import query_failure
from penstock.spark.internals import Execution, JvmError, as_batch, batch_execution, late_rows, set_limit
from penstock.spark.pipelines.batch_barrier import BatchBarrier, BatchWritten
from penstock.spark.pipelines.dead_letter_rows import dead_letters
from penstock.spark.pipelines.expected_columns import decoded_and_checked
from penstock.spark.pipelines.format_columns import is_unknown_schema, unknown_schema_ids
from penstock.spark.pipelines.kafka_options import sink_options
from penstock.spark.pipelines.observed_counts import Observed, counted, read_counts, reads_all
from penstock.spark.pipelines.pipeline_checkpoint import PipelineCheckpoint
from penstock.spark.pipelines.read_sources import of_each_source, of_source, read_range
from penstock.spark.pipelines.resume_offsets import EARLIEST, Log, Offsets
from penstock.spark.pipelines.sinks import maintain, writer_for
from penstock.spark.pipelines.sinks.kafka import kafka_rows
from penstock.spark.pipelines.task_ranges import task_ranges
from penstock.spark.pipelines.transactional_writer import GUARANTEE, ExactlyOnce
from penstock.spark.pipelines.unreadable import UnreadableRecords
from penstock.spark.pipelines.unreadable_reasons import reason_column
from penstock.spark.pipelines.writer_schemas import NewSchemasError, Schemas

Range = tuple[Mapping[TopicPartition, int], Mapping[TopicPartition, int]]
"""Start offsets and end offsets. The end itself is not part of the range."""


@dataclass(frozen=True)
class Output:
    """One output of a pipeline, for events and errors: its name, group and topics, and how long a stop waits for it."""

    name: str
    group: str
    topics: tuple[str, ...]
    drain_timeout: float
    kind: str = "pipeline"

    @property
    def source(self) -> str:
        return ", ".join(self.topics)


@dataclass(frozen=True)
class OutputWriter:
    """Writes one output of a pipeline, in a stream or in a backfill."""

    pipeline: Pipeline
    output: str
    sources: Sequence[str]
    clients: Mapping[str, str]
    cluster: Cluster
    schemas: Mapping[str, Schemas] = field(default_factory=dict)
    """The known schemas of its sources; the driver adds schemas while the pipeline runs."""
    exactly_once: ExactlyOnce | None = None

    @property
    def name(self) -> str:
        return f"{self.pipeline.name}.{self.output}" if self.output else self.pipeline.name

    @property
    def topics(self) -> tuple[str, ...]:
        """Return all topics of its sources, each once."""
        sources = self.pipeline.sources
        return tuple(dict.fromkeys(topic for name in self.sources for topic in sources[name].topics))

    @property
    def declared(self) -> "Output":
        return Output(self.name, self.pipeline.group, self.topics, self.pipeline.drain_timeout)

    def announce(self, emit: Callable[[Event], None], *, backfill: bool = False) -> None:
        """Emit an event for each sink, with its delivery guarantee."""
        for sink in self.pipeline.outputs[self.output]:
            group, name = self.pipeline.group, self.name
            if backfill:
                guarantee = sink.backfill_guarantee
            else:
                guarantee = sink.guarantee if self.exactly_once is None else GUARANTEE
            emit(SinkOpened(group=group, handler=name, sink=str(sink), guarantee=guarantee))

    def write(
        self, rows: DataFrame, batch: BatchId, *, execution: Callable[[], Execution], within: Range
    ) -> BatchWritten:
        """Write the rows to every sink, then the dead letters. ``execution`` returns the run that makes the rows."""
        try:
            return self._write(rows, batch, execution=execution, within=within)
        except Exception as error:
            if is_unknown_schema(error) and (found := self._new_schemas(rows.sparkSession, within)):
                raise NewSchemasError(found) from error
            raise

    def _write(
        self, rows: DataFrame, batch: BatchId, *, execution: Callable[[], Execution], within: Range
    ) -> BatchWritten:
        if self.exactly_once is None:
            self._write_rows(rows, batch)
        else:
            (topic,) = self.pipeline.outputs[self.output]
            assert isinstance(topic, Topic)  # noqa: S101 - Pipeline checks it for this delivery
            self.exactly_once.rows.write(kafka_rows(rows, topic), task_ranges(execution(), self.pipeline.name))
        seen = read_counts(execution(), {name: self.pipeline.sources[name] for name in self.sources})
        dead = 0
        if self.pipeline.dead_letter is not None:
            session = rows.sparkSession
            dead = sum(self._dead_letters(session, name, seen, within, execution()) for name in self.sources)
        counts = Counts(read=sum(seen.read.values()), written=seen.rows, dead_lettered=dead, skipped=seen.dropped)
        group, name = self.pipeline.group, self.name
        return BatchWritten(
            counts,
            tuple(
                ExpectationFailed(group=group, handler=name, expectation=text, rows=count)
                for text, count in seen.unmet.items()
            ),
        )

    def maintain(self, session: SparkSession, number: int) -> tuple[Event, ...]:
        """Maintain the tables for which it is due after this batch. A failure is reported; the batch is written."""
        return tuple(
            self._maintain(sink, session)
            for sink in self.pipeline.outputs[self.output]
            if isinstance(sink, Table) and sink.maintenance is not None and sink.maintenance.is_due(number)
        )

    def _maintain(self, table: Table, session: SparkSession) -> Event:
        group, began = self.pipeline.group, time.monotonic()
        try:
            maintain(table, session)
        except (PySparkException, JvmError) as error:
            reason = query_failure(error, self.declared).error.problem
            return Error(group=group, reason=f"The maintenance of {table} failed: {reason}", fatal=False)
        seconds = round(time.monotonic() - began, 3)
        return TableMaintained(group=group, handler=self.name, sink=str(table), seconds=seconds)

    def write_missing_dead_letters(
        self, session: SparkSession, start: Offsets, logs: Mapping[TopicPartition, Log]
    ) -> None:
        """Write the dead letters of a run that ended after it wrote rows and before it wrote dead letters.

        The transactions of rows are committed up to ``start``.
        """
        if self.exactly_once is None or self.pipeline.dead_letter is None:
            return
        letters = self.exactly_once.letters
        begin = {tp: logs[tp].start if offset == EARLIEST else offset for tp, offset in start.items()}
        committed = letters.settle(begin)
        due = {
            tp: (max(committed[tp], logs[tp].start), offset)
            for tp, offset in begin.items()
            if committed.get(tp, offset) < offset
        }
        for name in self.sources:
            within = tuple({tp: each[side] for tp, each in due.items()} for side in (0, 1))
            if of_source(self.pipeline.sources[name], within[1]):
                self._read_dead_letters(session, name, (within[0], within[1]))
        letters.set({tp: offset for tp, offset in begin.items() if tp not in due})

    def _write_rows(self, rows: DataFrame, batch: BatchId) -> None:
        options = sink_options(self.clients)
        writers = [writer_for(sink, options) for sink in self.pipeline.outputs[self.output]]
        keep = len(writers) > 1 or any(writer.reads_twice for writer in writers)
        if keep:
            rows = rows.persist()
        try:
            for writer in writers:
                writer.write(rows, batch)
        finally:
            if keep:
                rows.unpersist()

    def _dead_letters(
        self, session: SparkSession, name: str, seen: Observed, within: Range, execution: Execution
    ) -> int:
        """Write the dead letters of one source. Reads the batch once more only if not all their offsets are known."""
        if not self._was_read(name, seen, within, execution) or not seen.has_all_positions(name):
            return self._read_dead_letters(session, name, within)
        source, positions = self.pipeline.sources[name], seen.positions.get(name, [])
        records = UnreadableRecords(self.pipeline, source, self.schemas.get(name))
        if self.exactly_once is not None:
            letters = records.letters(session, self.cluster, positions) if positions else {}
            self.exactly_once.letters.write_here(letters, of_source(source, within[1]))
            return sum(map(len, letters.values()))
        return records.write_letters(session, self.cluster, positions) if positions else 0

    def _was_read(self, name: str, seen: Observed, within: Range, execution: Execution) -> bool:
        """Whether Spark has read every record of the source. It has not if all sinks had the batch, or with a limit.

        Compaction and transactions leave gaps in logs, so there may be fewer records than offsets.
        """
        start, end = (of_source(self.pipeline.sources[name], each) for each in within)
        length = sum(offset - max(0, start.get(tp, 0)) for tp, offset in end.items())
        read = seen.read.get(name, 0)
        return read >= length or (read > 0 and reads_all(execution, name))

    def _read_dead_letters(self, session: SparkSession, name: str, within: Range) -> int:
        """Read the batch once more in Spark, and write its dead letters."""
        pipeline, source = self.pipeline, self.pipeline.sources[name]
        # Counting keeps the optimizer from pushing the filter below it, where Spark would parse the JSON many times.
        rows = counted(
            decoded_and_checked(self._read_again(session, name, within), source, self.schemas.get(name)),
            "penstock.again",
        )
        reason = reason_column(source, pipeline.registry)
        letters = dead_letters(rows, topic=str(pipeline.dead_letter), group=pipeline.group, reason=reason)
        if self.exactly_once is not None:
            made, execution = as_batch(counted(letters))
            self.exactly_once.letters.write(made, task_ranges(execution, pipeline.name))
            return read_counts(execution, {}).rows
        letters = letters.persist()
        try:
            letters.write.format("kafka").options(**sink_options(self.clients)).save()
            return letters.count()
        finally:
            letters.unpersist()

    def _new_schemas(self, session: SparkSession, within: Range) -> dict[str, list[bytes]]:
        """Return all unknown schema ids of the batch: fetched one by one, each would repeat the batch."""
        return {
            name: schema_ids
            for name in self.sources
            if (schemas := self.schemas.get(name)) is not None
            and (schema_ids := unknown_schema_ids(self._read_again(session, name, within), schemas))
        }

    def _read_again(self, session: SparkSession, name: str, within: Range) -> DataFrame:
        start, end = (of_source(self.pipeline.sources[name], each) for each in within)
        start = {tp: start.get(tp, EARLIEST) for tp in end}
        return read_range(session, clients=self.clients, start=start, end=end)


class PipelineBatches(BatchBarrier):
    """The batches of one streaming query. Only Spark's stream thread changes ``size``, the size of the next batch."""

    def __init__(
        self, writer: OutputWriter, checkpoint: PipelineCheckpoint, size: BatchSize, *, has_watermark: bool
    ) -> None:
        super().__init__()
        self._has_watermark = has_watermark
        self._writer = writer
        self._checkpoint = checkpoint
        self.size = size
        self._query: StreamingQuery | None = None
        self._known = threading.Event()

    def attach(self, query: StreamingQuery) -> None:
        """Set the query. Spark may start the first batch before ``start`` has returned the query."""
        self._query = query
        self._known.set()

    def write(self, rows: DataFrame, number: int) -> BatchWritten:
        self._known.wait()
        began = time.monotonic()
        checkpoint = self._checkpoint
        start, end = checkpoint.start_of(number), checkpoint.offsets_of(number)
        written = self._writer.write(
            rows,
            BatchId(f"{self._writer.pipeline.group}/{self._writer.name}", checkpoint.id(), number),
            execution=lambda: batch_execution(self._query),  # type: ignore[arg-type] # attach has set it
            within=(start, end),
        )
        self._adapt(start, end, time.monotonic() - began)
        more = (*self._late_rows(), *self._writer.maintain(rows.sparkSession, number))
        return replace(written, events=(*written.events, *more))

    def _late_rows(self) -> tuple[Event, ...]:
        late = late_rows(batch_execution(self._query)) if self._has_watermark else 0  # type: ignore[arg-type]
        group, name = self._writer.pipeline.group, self._writer.name
        return (LateRows(group=group, handler=name, rows=late),) if late else ()

    def _adapt(self, start: Offsets, end: Offsets, seconds: float) -> None:
        """Set the size of the next batch. Spark's stream thread calls this, and plans the next batch right after it."""
        by_source = [
            sum(max(0, offset - max(0, start.get(tp, 0))) for tp, offset in of_source(source, end).items())
            for source in self._writer.pipeline.sources.values()
        ]
        # Each source has an equal part of the limit, and a source that has caught up does not use all of its part.
        is_full = self.size.is_filled_by(max(by_source), parts=len(by_source))
        self.size = self.size.after(sum(by_source), seconds, is_full=is_full)
        # If this version of Spark does not allow it, all batches stay as large as the first.
        set_limit(self._query, of_each_source(self._writer.pipeline, self.size.size))  # type: ignore[arg-type]
