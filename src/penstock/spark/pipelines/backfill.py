"""A backfill: runs a pipeline once over a range of its topics. It changes no group offsets and no checkpoint."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from uuid import uuid4

from pyspark import InheritableThread
from pyspark.sql import SparkSession

from penstock.app import Pipeline
from penstock.app.pipelines import BatchId, Span
from penstock.core.failures.outcome import DependencyUnavailable
from penstock.core.reports import events
from penstock.core.reports.record_counts import Counts
from penstock.errors import PenstockError, TopicError
from penstock.kafka import Cluster
from penstock.kafka.admin.log_range import range_offsets
from penstock.spark.driver.spark_errors import query_failure
from penstock.spark.internals import as_batch
from penstock.spark.pipelines.batch_barrier import BatchWritten
from penstock.spark.pipelines.kafka_options import client_options
from penstock.spark.pipelines.observed_counts import counted, sources_of
from penstock.spark.pipelines.output_batches import OutputWriter
from penstock.spark.pipelines.read_sources import readable_range
from penstock.spark.pipelines.resume_offsets import Offsets
from penstock.spark.pipelines.transactional_writer import ExactlyOnce
from penstock.spark.pipelines.user_function import outputs_of
from penstock.spark.pipelines.writer_schemas import NewSchemasError, Schemas, fetch_schemas, schemas_of

_WATCH_SECONDS = 0.05


@dataclass(frozen=True)
class Backfill:
    """A planned backfill. It reads exactly the records from ``start`` up to, and without, ``end`` of each partition."""

    pipeline: Pipeline
    clients: Mapping[str, str]
    cluster: Cluster
    start: Offsets
    end: Offsets
    schemas: Mapping[str, Schemas] = field(default_factory=dict)

    @property
    def length(self) -> int:
        return sum(end - self.start[tp] for tp, end in self.end.items())

    def run(self, session: SparkSession, emit: Callable[[events.Event], None], stop: threading.Event) -> None:
        """Write one output after the other. ``stop`` cancels the output that is being written."""
        incarnation = f"backfill-{uuid4()}"
        for output in self.pipeline.outputs:
            if stop.is_set():
                return
            writer = OutputWriter(self.pipeline, output, (), self.clients, self.cluster)
            self._announce(writer, emit)
            began = time.monotonic()
            written = self._write_with_schemas(
                writer, partial(self._write, session, output, incarnation), session, emit, stop
            )
            seconds = round(time.monotonic() - began, 3)
            if written is None:
                reason = (
                    f"The backfill of {writer.name} was cancelled. Tables have none of its rows; topics may have some."
                )
                emit(events.Error(group=self.pipeline.group, reason=reason, fatal=False))
            for event in () if written is None else written.events:
                emit(event)
            counts = Counts() if written is None else written.counts
            emit(events.Stopped(group=self.pipeline.group, handler=writer.name, seconds=seconds, **asdict(counts)))

    def _write_with_schemas(
        self,
        writer: OutputWriter,
        write: Callable[[], BatchWritten],
        session: SparkSession,
        emit: Callable[[events.Event], None],
        stop: threading.Event,
    ) -> BatchWritten | None:
        """Write the output. Where records have unknown schemas, fetch those and write it again."""
        while not stop.is_set():
            try:
                return _cancellable(session, stop, write)
            except NewSchemasError as new:
                while not stop.is_set():
                    try:
                        fetch_schemas(self.schemas, new.schema_ids)
                        break
                    except DependencyUnavailable as unavailable:
                        reason = f"The backfill of {writer.name} waits: {unavailable}."
                        emit(events.Error(group=self.pipeline.group, reason=reason, fatal=False))
                        stop.wait(unavailable.seconds)
        return None

    def _announce(self, writer: OutputWriter, emit: Callable[[events.Event], None]) -> None:
        group, topics = self.pipeline.group, self.pipeline.topics
        emit(
            events.Started(
                engine="spark",
                group=group,
                handler=writer.name,
                topics=topics,
                lag=self.length,
                backfill=True,
                expectations=self.pipeline.expectations,
            )
        )
        writer.announce(emit, backfill=True)
        for (topic, partition), end in sorted(self.end.items()):
            emit(
                events.RangeRead(
                    handler=writer.name,
                    topic=topic,
                    partition=partition,
                    start=self.start[topic, partition],
                    end=end,
                )
            )

    def _write(self, session: SparkSession, output: str, incarnation: str) -> BatchWritten:
        pipeline = self.pipeline
        # A group of its own: its offsets tell a repeated task what the first attempt has committed.
        group = f"{pipeline.group}.{incarnation}"
        exactly_once = ExactlyOnce.of(pipeline, self.cluster, group=group) if pipeline.is_transactional else None
        writer = OutputWriter(
            pipeline, output, tuple(pipeline.sources), self.clients, self.cluster, self.schemas, exactly_once
        )
        try:
            sources = {
                name: readable_range(
                    session,
                    pipeline,
                    name,
                    clients=self.clients,
                    start=self.start,
                    end=self.end,
                    schemas=self.schemas,
                )
                for name in pipeline.sources
            }
            rows = outputs_of(pipeline, sources)[output]
            writer = replace(writer, sources=sorted(sources_of(rows)))
            # Spark already runs a part of the plan here, to decide how to run the rest (adaptive execution).
            batch, execution = as_batch(counted(rows))
            return writer.write(
                batch,
                BatchId(f"{pipeline.group}/{writer.name}", incarnation, 0),
                execution=lambda: execution,
                within=(self.start, self.end),
            )
        except (PenstockError, NewSchemasError):
            raise
        except Exception as error:
            raise query_failure(error, writer.declared).error from error


def plan_backfill(pipeline: Pipeline, cluster: Cluster, span: Span) -> Backfill:
    tps = [tp for tp in cluster.topic_partitions(pipeline.topics) if span.includes(tp)]
    if not tps:
        raise TopicError(
            f"The range names no partition that pipeline {pipeline.name} reads.",
            hint=f"It reads {', '.join(pipeline.topics)}.",
        )
    start, end = range_offsets(cluster, tps, span, what=f"pipeline {pipeline.name}")
    clients = client_options(cluster.brokers, pipeline.settings)
    return Backfill(pipeline, clients, cluster, start, end, schemas_of(pipeline))


def _cancellable(session: SparkSession, stop: threading.Event, work: Callable[[], BatchWritten]) -> BatchWritten | None:
    """Run the work on a thread, and return its result; None if ``stop`` cancelled it."""
    results: list[BatchWritten] = []
    failures: list[BaseException] = []
    group = f"penstock-{uuid4()}"

    def run() -> None:
        session.sparkContext.setJobGroup(group, "backfill", interruptOnCancel=True)
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - the waiting thread raises it
            failures.append(error)

    thread = InheritableThread(run, session=session)
    thread.start()
    while thread.is_alive():
        if stop.is_set():
            session.sparkContext.cancelJobGroup(group)
        thread.join(_WATCH_SECONDS)
    if failures and not stop.is_set():
        raise failures[0]
    return results[0] if results else None
