"""A pipeline over a range of its topics: the same function and sinks, once, and no group or checkpoint moves."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import partial
from uuid import uuid4

from pyspark import InheritableThread
from pyspark.sql import SparkSession

from penstock.app import Pipeline, Start
from penstock.app.pipelines import Span
from penstock.core.failures.outcome import DependencyUnavailable
from penstock.core.records.record import TopicPartition
from penstock.core.reports import events
from penstock.core.reports.record_counts import Counts
from penstock.errors import PenstockError, TopicError
from penstock.kafka import Cluster
from penstock.spark.internals import as_batch
from penstock.spark.offsets import Log, Offsets
from penstock.spark.pipelines.observed_counts import counted, sources_of
from penstock.spark.pipelines.output_batches import Outlet
from penstock.spark.pipelines.read_sources import readable_range
from penstock.spark.pipelines.sinks import BatchId
from penstock.spark.pipelines.transactional_writer import ExactlyOnce
from penstock.spark.pipelines.user_function import outputs_of
from penstock.spark.pipelines.writer_schemas import NewSchemasError, Schemas, learn_all, schemas_of
from penstock.spark.source import client_options
from penstock.spark.spark_errors import query_failure

_WATCH_SECONDS = 0.05


@dataclass(frozen=True)
class Backfill:
    """What is decided before Spark starts: exactly these records, from each start up to and without each end."""

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
        """Each output in turn; a wish to stop cancels what is running."""
        incarnation = f"backfill-{uuid4()}"
        for output in self.pipeline.outputs:
            if stop.is_set():
                return
            outlet = Outlet(self.pipeline, output, (), self.clients, self.cluster)
            self._announce(outlet, emit)
            began = time.monotonic()
            counts = self._until_known(outlet, partial(self._write, session, output, incarnation), session, emit, stop)
            seconds = round(time.monotonic() - began, 3)
            if counts is None:
                reason = (
                    f"The backfill of {outlet.name} was cancelled: tables have nothing of it, topics may have a part."
                )
                emit(events.Error(group=self.pipeline.group, reason=reason, fatal=False))
            emit(
                events.Stopped(
                    group=self.pipeline.group, handler=outlet.name, seconds=seconds, **asdict(counts or Counts())
                )
            )

    def _until_known(
        self,
        outlet: Outlet,
        write: Callable[[], Counts],
        session: SparkSession,
        emit: Callable[[events.Event], None],
        stop: threading.Event,
    ) -> Counts | None:
        """Write it; where it has schemas that nobody has met, ask for them and write it again."""
        while not stop.is_set():
            try:
                return _cancellable(session, stop, write)
            except NewSchemasError as new:
                while not stop.is_set():
                    try:
                        learn_all(self.schemas, new.stamps)
                        break
                    except DependencyUnavailable as away:
                        reason = f"The backfill of {outlet.name} waits: {away}."
                        emit(events.Error(group=self.pipeline.group, reason=reason, fatal=False))
                        stop.wait(away.seconds)
        return None

    def _announce(self, outlet: Outlet, emit: Callable[[events.Event], None]) -> None:
        group, topics = self.pipeline.group, self.pipeline.topics
        emit(
            events.Started(
                engine="spark", group=group, handler=outlet.name, topics=topics, lag=self.length, backfill=True
            )
        )
        outlet.announce(emit, backfill=True)
        for (topic, partition), end in sorted(self.end.items()):
            emit(
                events.RangeRead(
                    handler=outlet.name,
                    topic=topic,
                    partition=partition,
                    start=self.start[topic, partition],
                    end=end,
                )
            )

    def _write(self, session: SparkSession, output: str, incarnation: str) -> Counts:
        pipeline = self.pipeline
        # Tasks that are repeated know by these what counts already; nobody else will ask.
        group = f"{pipeline.group}.{incarnation}"
        exactly_once = ExactlyOnce.of(pipeline, self.cluster, group=group) if pipeline.is_transactional else None
        outlet = Outlet(
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
            outlet = replace(outlet, sources=sorted(sources_of(rows)))
            # Spark runs a part of a static plan already here, to see how to run the rest.
            batch, execution = as_batch(counted(rows))
            return outlet.write(
                batch,
                BatchId(f"{pipeline.group}/{outlet.name}", incarnation, 0),
                execution=lambda: execution,
                within=(self.start, self.end),
            )
        except (PenstockError, NewSchemasError):
            raise
        except Exception as error:
            raise query_failure(error, outlet.declared).error from error


def plan_backfill(pipeline: Pipeline, cluster: Cluster, span: Span) -> Backfill:
    tps = [tp for tp in cluster.topic_partitions(pipeline.topics) if span.names(tp)]
    if not tps:
        raise TopicError(
            f"The range names no partition that pipeline {pipeline.name} reads.",
            hint=f"It reads {', '.join(pipeline.topics)}.",
        )
    starts, ends = cluster.start_offsets(tps), cluster.end_offsets(tps)
    logs = {tp: Log(starts[tp], ends[tp]) for tp in tps}
    start, end = (
        _offsets(each, logs, lambda moment: cluster.offsets_at(tps, moment)) for each in (span.start, span.end)
    )
    _check(pipeline, logs, start, end)
    clients = client_options(cluster.brokers, pipeline.settings)
    return Backfill(pipeline, clients, cluster, start, end, schemas_of(pipeline))


def _offsets(
    place_in_log: Start, logs: Mapping[TopicPartition, Log], at: Callable[[datetime], Mapping[TopicPartition, int]]
) -> Offsets:
    if isinstance(place_in_log, datetime):
        return dict(at(place_in_log))
    if isinstance(place_in_log, Mapping):
        return {tp: place_in_log[tp] for tp in logs}
    return {tp: log.start if place_in_log == "earliest" else log.end for tp, log in logs.items()}


def _check(pipeline: Pipeline, logs: Mapping[TopicPartition, Log], start: Offsets, end: Offsets) -> None:
    """What was asked for by number must be there: less would be taken for all of it."""
    for (topic, partition), log in logs.items():
        first, last = start[topic, partition], end[topic, partition]
        where = f"{topic}[{partition}]"
        if not log.start <= first <= log.end or not log.start <= last <= log.end:
            raise TopicError(
                f"{where} holds the offsets {log.start} to {log.end - 1}, not all of {first} to {last - 1}.",
                hint="Name offsets that are there, or use earliest and latest.",
            )
        if first > last:
            raise TopicError(
                f"The range of pipeline {pipeline.name} ends before it begins: {where} from {first} to {last}.",
                hint="Let --from be before --to.",
            )


def _cancellable(session: SparkSession, stop: threading.Event, work: Callable[[], Counts]) -> Counts | None:
    """The result of the work; None where it was cancelled because of ``stop``."""
    results: list[Counts] = []
    failures: list[BaseException] = []
    group = f"penstock-{uuid4()}"

    def run() -> None:
        session.sparkContext.setJobGroup(group, "backfill", interruptOnCancel=True)
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - it is raised where somebody waits
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
