"""Where the driver resumes partitions: at the group's commit, else by ``start``; ``from_`` overrides both."""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from penstock.app import Handler
from penstock.core.progress.slices import PartitionSlices
from penstock.core.records.record import TopicPartition
from penstock.core.reports import events
from penstock.kafka import Cluster, forced_positions, positions
from penstock.spark.driver.resume_positions import ResumePositions, resume
from penstock.spark.pipelines.checkpoint import checkpoint_of
from penstock.spark.pipelines.resume_offsets import Log, Offsets
from penstock.spark.tasks.slice_task import MEMBER


@dataclass(frozen=True)
class ResumedPartitions:
    """The partitions where they resume, and those whose commit must be set first: it is missing or does not count."""

    partitions: list[PartitionSlices]
    uncommitted: set[TopicPartition] = field(default_factory=set)


class StartOffsets:
    """One for each handler and run. ``at_start`` are the partitions that existed when the run began.

    Earlier versions of Penstock kept a checkpoint for handlers: it is read once.
    """

    def __init__(
        self,
        handler: Handler,
        cluster: Cluster,
        *,
        root: Path,
        at_start: Iterable[TopicPartition],
        emit: Callable[[events.Event], None],
    ) -> None:
        self._handler = handler
        self._at_start = frozenset(at_start)
        self._cluster = cluster
        self._emit = emit
        self._checkpoint = checkpoint_of(handler, root)
        self._seen: set[TopicPartition] = set()
        self._epochs = 0
        self._old = self._checkpoint.finished()

    def resume(
        self, tps: Sequence[TopicPartition], known: Mapping[TopicPartition, int], renewed: Container[str] = ()
    ) -> ResumedPartitions:
        """Ask the cluster where these partitions resume; topics that are ``renewed`` were recreated.

        ``known`` has positions of this run that the group may not have: not committed yet, or deleted with a topic.
        """
        handler, cluster = self._handler, self._cluster
        starts, ends = cluster.start_offsets(tps), cluster.stable_ends(tps)
        logs = {tp: Log(starts[tp], ends[tp]) for tp in tps}
        commits = cluster.commits(handler.group, tps)
        committed = {**{tp: offset for tp, (offset, _) in commits.items()}, **known}
        first = [tp for tp in tps if tp not in self._seen]
        sources = [tp for tp in tps if tp[0] not in handler.delayed]
        added = frozenset(sources) - self._at_start
        forced = forced_positions(handler, cluster, [tp for tp in first if tp in sources], added=added)
        found = resume(
            logs,
            checkpoint={tp: offset for tp, offset in self._old.items() if tp in first},
            committed=committed,
            # A record may be in a retry topic before the group has committed an offset of that topic.
            starts={**dict.fromkeys(tps), **positions(handler.start, cluster, sources, added=added)},
            forced=forced,
            renewed=renewed,
        )
        self._report(found, forced, committed)
        self._seen.update(tps)
        begin = found.positions
        self._epochs += 1
        partitions = [
            PartitionSlices(
                tp,
                self._epochs,
                begin[tp],
                metadata=commits[tp][1]
                if tp in commits and commits[tp][0] == begin[tp] and tp not in found.reset
                else "",
                end=ends[tp],
                stop=None if handler.replay_range is None else handler.replay_range.ends[tp],
            )
            for tp in tps
        ]
        there = {tp: offset for tp, (offset, _) in commits.items()}
        # Without a commit, another start than the earliest would skip what is written until the next run.
        missing = {tp: log.start for tp, log in logs.items()} if handler.start == "earliest" else {}
        uncommitted = {tp for tp in tps if begin[tp] != there.get(tp, missing.get(tp)) or tp in found.reset}
        return ResumedPartitions(partitions, uncommitted)

    def set_checkpoint_aside(self) -> None:
        """Call it when the group has the offsets of the old checkpoint."""
        if not self._old:
            return
        self._old = {}
        self._checkpoint.set_aside()
        self._emit(
            events.Error(
                group=self._handler.group,
                reason=f"The checkpoint {self._checkpoint.folder} was read for the last time: the group's offsets have "
                "the progress of handlers now. It was renamed and can be deleted.",
                fatal=False,
            )
        )

    def _report(self, found: ResumePositions, forced: Mapping[TopicPartition, int | None], committed: Offsets) -> None:
        who = {"group": self._handler.group, "member": MEMBER}
        for topic, partition in sorted(found.forced):
            self._emit(
                events.StartOverridden(
                    **who,
                    topic=topic,
                    partition=partition,
                    offset=None if forced[topic, partition] is None else found.positions[topic, partition],
                    committed=committed.get((topic, partition)),
                )
            )
        for each in found.moved:
            topic, partition = each.tp
            self._emit(
                events.OffsetOutOfRange(
                    **who,
                    topic=topic,
                    partition=partition,
                    offset=each.offset,
                    low=each.low,
                    high=each.high,
                    moved_to=each.moved_to,
                    skipped=each.skipped,
                )
            )
