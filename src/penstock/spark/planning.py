"""Plans a handler before its query starts: where each partition resumes, and where the run ends."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.app import Handler
from penstock.core.reports import events
from penstock.core.scheduling.batch_size import BatchSize
from penstock.errors import PenstockError
from penstock.kafka import Cluster, forced_positions, positions, source_partitions
from penstock.spark.checkpoint import Checkpoint, checkpoint_of
from penstock.spark.exactly_once import CommittedByTasks, ExactlyOnceSink
from penstock.spark.finished import Finished, above, count, read_maps
from penstock.spark.group import MEMBER, GroupOffsets, refuse_members
from penstock.spark.lagging import ends_of
from penstock.spark.resume_offsets import Log, Offsets, Resumption, resume
from penstock.spark.source import client_options
from penstock.spark.task import for_workers


@dataclass(frozen=True)
class Plan:
    """The plan of a handler, made before its query starts.

    ``stage`` is the handler as Spark sends it to workers; ``clients`` has the settings of Spark's Kafka clients.
    ``start`` has the offsets where Spark starts without a checkpoint, ``begin`` the same with EARLIEST resolved.
    ``finished`` has records that need not be handled again. With ``until_caught_up``, ``targets`` are the end offsets
    at which the run stops; otherwise None. ``size`` is the size of the first batch, with the limits of the next ones.
    ``exactly_once`` is the sink for that delivery; None with at-least-once.
    """

    handler: Handler
    stage: Handler
    clients: Mapping[str, str]
    checkpoint: Checkpoint
    start: Offsets
    begin: Offsets
    finished: Finished
    lag: int
    targets: Offsets | None
    group: GroupOffsets
    cluster_view: "ClusterView"
    size: BatchSize
    exactly_once: ExactlyOnceSink | None


class ClusterView:
    """Asks the cluster what Spark does not report. If there is no answer, the caller asks again later."""

    def __init__(self, cluster: Cluster, topic_ids: Mapping[str, str]) -> None:
        self._cluster = cluster
        self._topic_ids = topic_ids

    def ends(self, offsets: Offsets) -> Offsets | None:
        """Return the end offsets of these partitions; None if Kafka does not answer."""
        return ends_of(self._cluster, offsets)

    def renewed(self) -> set[str]:
        """Return topics that were deleted and recreated since the plan.

        Spark does not notice it if the new topic already has more records than Spark has read of the old one.
        """
        try:
            ids = self._cluster.topic_ids(self._topic_ids)
        except PenstockError:
            return set()
        return {topic for topic, found in ids.items() if found != self._topic_ids[topic]}


class Planner:
    """Plans one handler: at the start of a run, and again for each restart of its query.

    ``repeats_exactly`` is for sinks that recognise a batch by its number: a planned batch keeps its records.
    """

    def __init__(
        self,
        handler: Handler,
        cluster: Cluster,
        *,
        root: Path,
        emit: Callable[[events.Event], None],
        until_caught_up: bool,
        repeats_exactly: bool = False,
    ) -> None:
        self._handler = handler
        self._cluster = cluster
        self._emit = emit
        self._until_caught_up = until_caught_up
        self._repeats_exactly = repeats_exactly
        self._checkpoint = checkpoint_of(handler, root)
        self._stage, self._clients = for_workers(handler), client_options(cluster.brokers, handler.settings)
        self._last: Plan | None = None
        self._topic_ids: dict[str, str] = {}

    def plan(self) -> Plan:
        """Make a plan. The first one finds all errors that can be found before Spark starts, which takes seconds."""
        handler, cluster = self._handler, self._cluster
        first = self._last is None
        if first:
            refuse_members(cluster, handler.group)
        tps = source_partitions(handler, cluster)
        ids = cluster.topic_ids({topic for topic, _ in tps})
        renewed = {topic for topic, found in ids.items() if self._topic_ids.get(topic, found) != found}
        starts, ends = cluster.start_offsets(tps), cluster.end_offsets(tps)
        logs = {tp: Log(starts[tp], ends[tp]) for tp in tps}
        commits = cluster.commits(handler.group, tps)
        committed = {tp: offset for tp, (offset, _) in commits.items()}
        resumption = resume(
            logs,
            finished=self._checkpoint.finished(),
            committed=committed,
            starts=positions(handler.start, cluster, tps),
            # Only at the start of a run, as for a local member that gets a partition a second time.
            forced=forced_positions(handler, cluster, tps) if first else {},
            renewed=renewed,
        )
        self._report(resumption, committed)
        self._tidy(resumption)
        begin = resumption.begin(logs)
        finished = above(self._read_maps(commits, resumption), begin)
        known = {tp: offset for tp, offset in committed.items() if tp not in resumption.reset}
        exactly_once = None
        if handler.is_exactly_once:
            exactly_once = ExactlyOnceSink(handler, cluster, self._checkpoint, finished)
            # The marker of a recreated topic would hide its new records.
            exactly_once.reset({tp: begin[tp] for tp in resumption.reset})
            exactly_once.begin(resumption.offsets, {**committed, **{tp: begin[tp] for tp in resumption.reset}})
        commits_to = CommittedByTasks() if handler.is_exactly_once else cluster
        group = GroupOffsets(cluster, handler.group, known, self._emit, finished=finished, commits=commits_to)
        # EARLIEST is below every offset, so partitions that start there commit nothing yet.
        group.advance({tp: begin[tp] if tp in resumption.reset else at for tp, at in resumption.offsets.items()})
        self._topic_ids |= ids
        self._last = Plan(
            handler=handler,
            stage=self._stage,
            clients=self._clients,
            checkpoint=self._checkpoint,
            start=resumption.offsets,
            begin=begin,
            finished=finished,
            lag=sum(max(0, ends[tp] - offset) for tp, offset in begin.items()) - count(finished),
            targets=self._targets(begin, ends),
            group=group,
            cluster_view=ClusterView(cluster, ids),
            size=BatchSize(handler.max_in_flight, most=handler.max_micro_batch, seconds=handler.micro_batch),
            exactly_once=exactly_once,
        )
        return self._last

    def _report(self, resumption: Resumption, committed: Offsets) -> None:
        for topic, partition in sorted(resumption.forced):
            offset = resumption.offsets[topic, partition]
            self._emit(
                events.Forced(
                    group=self._handler.group,
                    member=MEMBER,
                    topic=topic,
                    partition=partition,
                    offset=offset if offset >= 0 else None,
                    committed=committed.get((topic, partition)),
                )
            )
        for found in resumption.moved:
            topic, partition = found.tp
            self._emit(
                events.OffsetOutOfRange(
                    group=self._handler.group,
                    member=MEMBER,
                    topic=topic,
                    partition=partition,
                    offset=found.offset,
                    low=found.low,
                    high=found.high,
                    moved_to=found.moved_to,
                    skipped=found.skipped,
                )
            )

    def _tidy(self, resumption: Resumption) -> None:
        if resumption.checkpoint_fits and not self._repeats_exactly:
            self._checkpoint.forget_unfinished()
        if not (resumption.checkpoint_fits and self._checkpoint.is_readable()):
            self._checkpoint.set_aside()

    def _read_maps(self, commits: Mapping[tuple[str, int], tuple[int, str]], resumption: Resumption) -> Finished:
        """Read the offset maps of partitions that resume at the group's offset, or after it."""
        counting = {tp: commit for tp, commit in commits.items() if tp not in resumption.reset}
        return read_maps(
            counting, lambda reason: self._emit(events.Error(group=self._handler.group, reason=reason, fatal=False))
        )

    def _targets(self, begin: Offsets, ends: Offsets) -> Offsets | None:
        """Return the end offsets at the start of the run that are still to be reached; lower if a log was recreated."""
        if not self._until_caught_up:
            return None
        wanted = ends if self._last is None or self._last.targets is None else self._last.targets
        reachable = {tp: min(end, ends[tp]) for tp, end in wanted.items() if tp in ends}
        return {tp: end for tp, end in reachable.items() if begin[tp] < end}
