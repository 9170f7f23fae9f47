"""What is decided about a handler before its query starts: where it goes on, and how far."""

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
from penstock.spark.offsets import Log, Offsets, Resumption, resume
from penstock.spark.source import client_options
from penstock.spark.task import for_workers


@dataclass(frozen=True)
class Plan:
    """All that is decided about a handler before Spark starts.

    ``stage`` is the handler as it travels to the workers, ``clients`` holds the settings of Spark's Kafka clients.
    ``start`` is where Spark begins where it has no checkpoint, ``begin`` the same in offsets of now. ``finished`` is
    what need not be handled again. ``targets`` are the ends to reach where the run is to end when it has caught up, and
    None where it is not. ``size`` is how large the first batch is, and what its successors aim at. ``exactly_once``
    is the sink for that, and None where at-least-once will do.
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
    lookout: "Lookout"
    size: BatchSize
    exactly_once: ExactlyOnceSink | None


class Lookout:
    """Asks the cluster what Spark does not tell. Where no answer comes, the next time will do."""

    def __init__(self, cluster: Cluster, topic_ids: Mapping[str, str]) -> None:
        self._cluster = cluster
        self._topic_ids = topic_ids

    def ends(self, offsets: Offsets) -> Offsets | None:
        """The ends of these partitions, None where they cannot be asked for."""
        return ends_of(self._cluster, offsets)

    def renewed(self) -> set[str]:
        """Topics that were deleted and made anew since the plan.

        One that has grown past our position before Spark looks again would else be taken for the old one.
        """
        try:
            ids = self._cluster.topic_ids(self._topic_ids)
        except PenstockError:
            return set()
        return {topic for topic, found in ids.items() if found != self._topic_ids[topic]}


class Planner:
    """Plans one handler: for the start of a run, and once more for each start of its query after that.

    ``repeats_exactly`` is for sinks that know a batch by its number: one that was planned stays as it was planned.
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
        """Everything that can be found wrong before Spark takes its seconds to start is found here."""
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
            # As for a member that gets its partitions a second time: that was what the start was for.
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
            # The marker of a log that was made anew would hide the new records.
            exactly_once.reset({tp: begin[tp] for tp in resumption.reset})
            exactly_once.begin(resumption.offsets, {**committed, **{tp: begin[tp] for tp in resumption.reset}})
        by_whom = CommittedByTasks() if handler.is_exactly_once else cluster
        group = GroupOffsets(cluster, handler.group, known, self._emit, finished=finished, commits=by_whom)
        # What merely begins at the start of its log has nothing to say yet.
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
            lookout=Lookout(cluster, ids),
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
        """Of partitions that go on where the group stands, or after it."""
        counting = {tp: commit for tp, commit in commits.items() if tp not in resumption.reset}
        return read_maps(
            counting, lambda reason: self._emit(events.Error(group=self._handler.group, reason=reason, fatal=False))
        )

    def _targets(self, begin: Offsets, ends: Offsets) -> Offsets | None:
        """The ends at the start of the run, as far as the logs still have them, where there is something to do."""
        if not self._until_caught_up:
            return None
        wanted = ends if self._last is None or self._last.targets is None else self._last.targets
        reachable = {tp: min(end, ends[tp]) for tp, end in wanted.items() if tp in ends}
        return {tp: end for tp, end in reachable.items() if begin[tp] < end}
