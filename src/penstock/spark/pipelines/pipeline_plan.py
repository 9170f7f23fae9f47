"""Where a pipeline goes on, and the queries that keep it running."""

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
from penstock.spark.exactly_once import CommittedByTasks
from penstock.spark.group import GroupOffsets, refuse_members
from penstock.spark.offsets import EARLIEST, Log, Offsets
from penstock.spark.pipelines.commit_notes import NotedCommits, commit_note
from penstock.spark.pipelines.observed_counts import sources_of
from penstock.spark.pipelines.output_batches import Outlet
from penstock.spark.pipelines.output_query import Advances, OutputPlan, PipelineQuery
from penstock.spark.pipelines.pipeline_checkpoint import PipelineCheckpoint, pipeline_checkpoint
from penstock.spark.pipelines.read_sources import read_stream
from penstock.spark.pipelines.resumption import Resumption, resume_pipeline
from penstock.spark.pipelines.transactional_writer import ExactlyOnce
from penstock.spark.pipelines.user_function import outputs_of
from penstock.spark.pipelines.writer_schemas import Schemas, schemas_of
from penstock.spark.source import client_options

# How many partitions a sentence names.
_SHOWN_MOVES = 5


@dataclass(frozen=True)
class PipelinePlan:
    """All that is decided about a pipeline before Spark starts; each output goes on from its own place."""

    pipeline: Pipeline
    clients: Mapping[str, str]
    cluster: Cluster
    checkpoints: Mapping[str, PipelineCheckpoint]
    resumptions: Mapping[str, Resumption]
    logs: Mapping[TopicPartition, Log]
    group: "SlowestOutput"
    until_caught_up: bool
    schemas: Mapping[str, Schemas]
    exactly_once: ExactlyOnce | None

    def queries(self, session: SparkSession, emit: Callable[[Event], None]) -> list[PipelineQuery]:
        """Call the user's function, once for each output, as each has a place of its own to go on from."""
        queries, used, parts = [], set(), []
        for output in self.pipeline.outputs:
            start = self.resumptions[output].offsets
            build = partial(self._rows, session, output)
            rows = build()
            names = sources_of(rows)
            used |= names
            outlet = Outlet(
                self.pipeline, output, sorted(names), self.clients, self.cluster, self.schemas, self.exactly_once
            )
            outlet.make_good(session, start, self.logs)
            plan = self._output_plan(outlet)
            parts.append((plan.group, {tp: at for tp, at in start.items() if tp[0] in plan.handler.topics}))
            queries.append(PipelineQuery(plan, outlet, rows, emit, build=build))
        unused = [name for name in self.pipeline.sources if name not in used]
        if unused:
            raise ConfigError(
                f"Pipeline {self.pipeline.name} makes nothing of its source {unused[0]}.",
                hint="Leave it out, or use it.",
            )
        # As soon as all are known: one that has nothing left to do would hold up the others.
        for group, offsets in parts:
            group.advance(offsets)
        return queries

    def _rows(self, session: SparkSession, output: str) -> DataFrame:
        """What the user's function makes of its sources, as far as their schemas are known by now."""
        start = self.resumptions[output].offsets
        sources = {
            name: read_stream(session, self.pipeline, name, clients=self.clients, start=start, schemas=self.schemas)
            for name in self.pipeline.sources
        }
        return outputs_of(self.pipeline, sources)[output]

    def _output_plan(self, outlet: Outlet) -> OutputPlan:
        topics = set(outlet.topics)
        left = {
            tp: offsets for tp, offsets in self.resumptions[outlet.output].left(self.logs).items() if tp[0] in topics
        }
        return OutputPlan(
            handler=outlet.declared,
            checkpoint=self.checkpoints[outlet.output],
            lag=sum(map(len, left.values())),
            targets={tp: each.stop for tp, each in left.items()} if self.until_caught_up else None,
            group=self.group.part(outlet.output, topics),
        )


class SlowestOutput:
    """The group stands where the slowest of a pipeline's outputs does."""

    def __init__(self, group: GroupOffsets) -> None:
        self._group = group
        self._parts: dict[str, tuple[set[str], Offsets]] = {}

    def part(self, output: str, topics: set[str]) -> Advances:
        self._parts[output] = (topics, {})
        return _Part(self, output)

    def advance(self, output: str, finished: Mapping[TopicPartition, int]) -> None:
        self._parts[output][1].update(finished)
        self._group.advance({tp: self._lowest(tp) for tp in finished})

    def _lowest(self, tp: TopicPartition) -> int:
        """Where an output that reads this partition has said nothing yet, nothing moves."""
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
    """Everything that can be found wrong before Spark takes its seconds to start is found here."""
    clients = client_options(cluster.brokers, pipeline.settings)
    refuse_members(cluster, pipeline.group)
    tps = cluster.topic_partitions(pipeline.topics)
    starts, ends = cluster.start_offsets(tps), cluster.end_offsets(tps)
    logs = {tp: Log(starts[tp], ends[tp]) for tp in tps}
    exactly_once = ExactlyOnce.of(pipeline, cluster) if pipeline.is_transactional else None
    # Of a run that was killed, tasks may still be about to commit.
    committed = exactly_once.rows.settle(tps) if exactly_once else cluster.committed(pipeline.group, tps)
    checkpoints = {
        output: pipeline_checkpoint(Outlet(pipeline, output, (), clients, cluster).declared, root)
        for output in pipeline.outputs
    }
    note = commit_note(next(iter(checkpoints.values())))
    if exactly_once is None:
        moved = note.moved(committed)
    else:  # tasks commit before Spark notes the end of their batch, so the group is never behind by itself
        finished = next(iter(checkpoints.values())).finished()
        moved = {tp: at for tp, at in finished.items() if committed.get(tp, at) < at}
    resumptions = {
        output: _resume(pipeline, checkpoint, logs, committed=committed, moved=moved, emit=emit)
        for output, checkpoint in checkpoints.items()
    }
    _tell_of_moves(pipeline, committed, moved, emit)
    if exactly_once is not None:
        (resumption,) = resumptions.values()
        _set_markers(exactly_once, resumption, committed, logs)
    by_whom = NotedCommits(cluster, note, committed) if exactly_once is None else CommittedByTasks()
    group = SlowestOutput(GroupOffsets(cluster, pipeline.group, committed, emit, commits=by_whom))
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
    exactly_once: ExactlyOnce, resumption: Resumption, committed: Offsets, logs: Mapping[TopicPartition, Log]
) -> None:
    """To where Spark goes on: also back, where a log was made anew and the marker would hide its records."""
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
) -> Resumption:
    finished = checkpoint.finished()
    resumption = resume_pipeline(logs, finished=finished, committed=committed, start=pipeline.start, moved=moved)
    for surprise in resumption.surprises:
        emit(Error(group=pipeline.group, reason=surprise, fatal=False))
    if resumption.checkpoint_fits and checkpoint.is_readable():
        return resumption
    if checkpoint.has_state():
        differing = {tp: at for tp, at in finished.items() if resumption.offsets.get(tp, -1) != at}
        where = _moves(differing, committed) if differing else "its checkpoint is damaged"
        raise StateError(
            f"Pipeline {pipeline.name} cannot go on from the offsets of group {pipeline.group!r}, because it keeps a "
            f"state of all records before ({where}).",
            hint=f"Set the group back to where it was, or delete {checkpoint.folder} to start without the state.",
        )
    checkpoint.set_aside()
    return resumption


def _tell_of_moves(
    pipeline: Pipeline,
    committed: Mapping[TopicPartition, int],
    moved: Mapping[TopicPartition, int],
    emit: Callable[[Event], None],
) -> None:
    if moved:
        reason = (
            f"Another tool has moved group {pipeline.group!r} ({_moves(moved, committed)}). Pipeline {pipeline.name} "
            "goes on from there, and writes records that it reads again to its sinks again."
        )
        emit(Error(group=pipeline.group, reason=reason, fatal=False))


def _moves(before: Mapping[TopicPartition, int], now: Mapping[TopicPartition, int]) -> str:
    """The first few of them, for people."""
    moves = [
        f"{topic}[{partition}] from {offset} to {now.get((topic, partition), 'no offset')}"
        for (topic, partition), offset in sorted(before.items())
    ]
    more = len(moves) - _SHOWN_MOVES
    return ", ".join(moves[:_SHOWN_MOVES]) + (f" and {more} more" if more > 0 else "")
