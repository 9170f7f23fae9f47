"""Plans a pipeline: finds the offset where each output resumes, and makes the query of each output."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from penstock.app import Pipeline
from penstock.core.records.record import TopicPartition
from penstock.core.reports.events import Error, Event
from penstock.errors import ConfigError, StateError
from penstock.kafka import Cluster
from penstock.spark.pipelines.commit_notes import NotedCommits, commit_note
from penstock.spark.pipelines.group_offsets import GroupOffsets, refuse_members
from penstock.spark.pipelines.kafka_options import client_options
from penstock.spark.pipelines.markers import CommittedByTasks
from penstock.spark.pipelines.observed_counts import sources_of
from penstock.spark.pipelines.output_batches import OutputWriter
from penstock.spark.pipelines.output_query import OffsetCommitter, OutputPlan, PipelineQuery
from penstock.spark.pipelines.pipeline_checkpoint import PipelineCheckpoint, pipeline_checkpoint
from penstock.spark.pipelines.read_sources import read_stream
from penstock.spark.pipelines.resume_offsets import EARLIEST, Log, Offsets
from penstock.spark.pipelines.resumption import PipelineResumption, resume_pipeline
from penstock.spark.pipelines.transactional_writer import ExactlyOnce
from penstock.spark.pipelines.user_function import outputs_of
from penstock.spark.pipelines.writer_schemas import Schemas, schemas_of

# How many partitions an error names.
_SHOWN_MOVES = 5


@dataclass(frozen=True)
class PipelinePlan:
    """The plan of a pipeline, made before Spark starts. Each output resumes from its own offsets."""

    pipeline: Pipeline
    clients: Mapping[str, str]
    cluster: Cluster
    checkpoints: Mapping[str, PipelineCheckpoint]
    resumptions: Mapping[str, PipelineResumption]
    logs: Mapping[TopicPartition, Log]
    group: "SlowestOutput"
    until_caught_up: bool
    schemas: Mapping[str, Schemas]
    exactly_once: ExactlyOnce | None

    def queries(self, session: SparkSession, emit: Callable[[Event], None]) -> list[PipelineQuery]:
        """Call the user's function once for each output, because each output resumes from its own offsets."""
        queries, used, parts = [], set(), []
        for output in self.pipeline.outputs:
            start = self.resumptions[output].offsets
            build = partial(self._rows, session, output)
            rows = build()
            names = sources_of(rows)
            used |= names
            writer = OutputWriter(
                self.pipeline, output, sorted(names), self.clients, self.cluster, self.schemas, self.exactly_once
            )
            writer.write_missing_dead_letters(session, start, self.logs)
            plan = self._output_plan(writer)
            parts.append((plan.group, {tp: at for tp, at in start.items() if tp[0] in plan.handler.topics}))
            queries.append(PipelineQuery(plan, writer, rows, emit, build=build))
        unused = [name for name in self.pipeline.sources if name not in used]
        if unused:
            raise ConfigError(
                f"Pipeline {self.pipeline.name} does not use its source {unused[0]}.",
                hint="Leave it out, or use it.",
            )
        # Report the offsets of all outputs now: an output that has caught up would otherwise hold back the group.
        for group, offsets in parts:
            group.advance(offsets)
        return queries

    def _rows(self, session: SparkSession, output: str) -> DataFrame:
        """Call the user's function with its sources, decoded with the schemas that are known now."""
        start = self.resumptions[output].offsets
        sources = {
            name: read_stream(session, self.pipeline, name, clients=self.clients, start=start, schemas=self.schemas)
            for name in self.pipeline.sources
        }
        return outputs_of(self.pipeline, sources)[output]

    def _output_plan(self, writer: OutputWriter) -> OutputPlan:
        topics = set(writer.topics)
        left = {
            tp: offsets for tp, offsets in self.resumptions[writer.output].left(self.logs).items() if tp[0] in topics
        }
        return OutputPlan(
            handler=writer.declared,
            checkpoint=self.checkpoints[writer.output],
            lag=sum(map(len, left.values())),
            targets={tp: each.stop for tp, each in left.items()} if self.until_caught_up else None,
            group=self.group.part(writer.output, topics),
        )


class SlowestOutput:
    """Commits the offsets of the slowest output of a pipeline: all outputs share one group."""

    def __init__(self, group: GroupOffsets) -> None:
        self._group = group
        self._parts: dict[str, tuple[set[str], Offsets]] = {}

    def part(self, output: str, topics: set[str]) -> OffsetCommitter:
        self._parts[output] = (topics, {})
        return _Part(self, output)

    def advance(self, output: str, finished: Mapping[TopicPartition, int]) -> None:
        self._parts[output][1].update(finished)
        self._group.advance({tp: self._lowest(tp) for tp in finished})

    def _lowest(self, tp: TopicPartition) -> int:
        """Return the lowest offset; EARLIEST, which commits nothing, while an output has not reported yet."""
        return min(reached.get(tp, EARLIEST) for topics, reached in self._parts.values() if tp[0] in topics)


@dataclass(frozen=True)
class _Part:
    whole: SlowestOutput
    output: str

    def advance(self, finished: Mapping[TopicPartition, int]) -> None:
        self.whole.advance(self.output, finished)


def plan_pipeline(
    pipeline: Pipeline, cluster: Cluster, *, root: Path, emit: Callable[[Event], None], until_caught_up: bool
) -> PipelinePlan:
    """Plan a pipeline. Finds all errors that can be found before Spark starts, which takes seconds."""
    clients = client_options(cluster.brokers, pipeline.settings)
    refuse_members(cluster, pipeline.group)
    tps = cluster.topic_partitions(pipeline.topics)
    starts, ends = cluster.start_offsets(tps), cluster.end_offsets(tps)
    logs = {tp: Log(starts[tp], ends[tp]) for tp in tps}
    exactly_once = ExactlyOnce.of(pipeline, cluster) if pipeline.is_transactional else None
    # Tasks of a killed run may still try to commit; settle fences them first.
    committed = exactly_once.rows.settle(tps) if exactly_once else cluster.committed(pipeline.group, tps)
    checkpoints = {
        output: pipeline_checkpoint(OutputWriter(pipeline, output, (), clients, cluster).declared, root)
        for output in pipeline.outputs
    }
    note = commit_note(next(iter(checkpoints.values())))
    if exactly_once is None:
        moved = note.moved(committed)
    else:  # tasks commit before Spark records their batch as finished, so only another tool moves the group behind
        finished = next(iter(checkpoints.values())).finished()
        moved = {tp: at for tp, at in finished.items() if committed.get(tp, at) < at}
    resumptions = {
        output: _resume(pipeline, checkpoint, logs, committed=committed, moved=moved, emit=emit)
        for output, checkpoint in checkpoints.items()
    }
    _report_moves(pipeline, committed, moved, emit)
    if exactly_once is not None:
        (resumption,) = resumptions.values()
        _set_markers(exactly_once, resumption, committed, logs)
    commits = NotedCommits(cluster, note, committed) if exactly_once is None else CommittedByTasks()
    group = SlowestOutput(GroupOffsets(cluster, pipeline.group, committed, emit, commits=commits))
    return PipelinePlan(
        pipeline=pipeline,
        clients=clients,
        cluster=cluster,
        checkpoints=checkpoints,
        resumptions=resumptions,
        logs=logs,
        group=group,
        until_caught_up=until_caught_up,
        schemas=schemas_of(pipeline),
        exactly_once=exactly_once,
    )


def _set_markers(
    exactly_once: ExactlyOnce, resumption: PipelineResumption, committed: Offsets, logs: Mapping[TopicPartition, Log]
) -> None:
    """Set the group's offsets to where Spark resumes; also back, where a topic was recreated."""
    begin = {tp: logs[tp].start if at == EARLIEST else at for tp, at in resumption.offsets.items()}
    exactly_once.rows.reset({tp: at for tp, at in begin.items() if committed.get(tp, -1) > at})
    exactly_once.rows.begin(resumption.offsets, committed)


def _resume(
    pipeline: Pipeline,
    checkpoint: PipelineCheckpoint,
    logs: Mapping[TopicPartition, Log],
    *,
    committed: Mapping[TopicPartition, int],
    moved: Mapping[TopicPartition, int],
    emit: Callable[[Event], None],
) -> PipelineResumption:
    finished = checkpoint.finished()
    resumption = resume_pipeline(logs, finished=finished, committed=committed, start=pipeline.start, moved=moved)
    for warning in resumption.warnings:
        emit(Error(group=pipeline.group, reason=warning, fatal=False))
    if resumption.checkpoint_fits and checkpoint.is_readable():
        return resumption
    if checkpoint.has_state():
        differing = {tp: at for tp, at in finished.items() if resumption.offsets.get(tp, -1) != at}
        where = _moves(differing, committed) if differing else "its checkpoint is damaged"
        raise StateError(
            f"Pipeline {pipeline.name} cannot resume from the offsets of group {pipeline.group!r}, because it keeps a "
            f"state of all earlier records ({where}).",
            hint=f"Set the group back to where it was, or delete {checkpoint.folder} to start without the state.",
        )
    checkpoint.set_aside()
    return resumption


def _report_moves(
    pipeline: Pipeline,
    committed: Mapping[TopicPartition, int],
    moved: Mapping[TopicPartition, int],
    emit: Callable[[Event], None],
) -> None:
    if moved:
        reason = (
            f"Another tool has moved group {pipeline.group!r} ({_moves(moved, committed)}). Pipeline {pipeline.name} "
            "resumes from there, and writes records that it reads again to its sinks again."
        )
        emit(Error(group=pipeline.group, reason=reason, fatal=False))


def _moves(before: Mapping[TopicPartition, int], now: Mapping[TopicPartition, int]) -> str:
    """Return the first few moves as text."""
    moves = [
        f"{topic}[{partition}] from {offset} to {now.get((topic, partition), 'no offset')}"
        for (topic, partition), offset in sorted(before.items())
    ]
    more = len(moves) - _SHOWN_MOVES
    return ", ".join(moves[:_SHOWN_MOVES]) + (f" and {more} more" if more > 0 else "")
