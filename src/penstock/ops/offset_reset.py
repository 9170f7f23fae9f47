"""Resets a group's offsets: makes a plan that can be shown, then carries it out."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from penstock.core.progress.offset_csv import Plan as Wanted
from penstock.core.progress.reset_rules import Effect, LogBounds, Scenario, Target, To, clamped, effect, target
from penstock.core.records.record import TopicPartition
from penstock.errors import ConfigError, PenstockError, StateError, TopicError
from penstock.kafka.admin.cluster import Cluster
from penstock.kafka.admin.consumer_groups import CommittedOffset, GroupDescription, Groups
from penstock.kafka.admin.log_bounds import Bounds, Found, Logs
from penstock.kafka.read.consumer_offsets import times_at
from penstock.ops.group_lag import offset_map_of
from penstock.ops.groups_of_any_kind import describe, no_group, share_groups
from penstock.ops.offset_backups import OffsetBackup, OffsetBackups
from penstock.ops.spark_checkpoints import SparkCheckpoint, spark_checkpoints
from penstock.ops.topic_facts import require_bounds

Commits = Mapping[TopicPartition, CommittedOffset]


@dataclass(frozen=True)
class OffsetMove:
    """The change of one partition from its old commit to the new one; None means no commit."""

    group: str
    tp: TopicPartition
    old: CommittedOffset | None
    new: CommittedOffset | None
    effect: Effect
    span: tuple[float, float] | None = None
    note: str = ""

    @property
    def changes(self) -> bool:
        return self.old != self.new


@dataclass(frozen=True)
class ResetPlan:
    """``before`` has all commits of each group. ``checkpoints`` are Spark's, to be moved aside."""

    reason: str
    moves: tuple[OffsetMove, ...]
    before: Mapping[str, Commits]
    checkpoints: Mapping[str, Sequence[SparkCheckpoint]]
    warnings: tuple[str, ...] = ()

    @property
    def groups(self) -> list[str]:
        return list(self.before)


@dataclass(frozen=True)
class Scope:
    """Which partitions to reset: by topic, all of them (None) or the given numbers."""

    topics: Mapping[str, Collection[int] | None]


def parse_scope(topics: Iterable[str]) -> Scope:
    """Parse Kafka's notation: ``orders``, or ``orders:0,2``."""
    found: dict[str, Collection[int] | None] = {}
    for text in topics:
        topic, colon, numbers = text.partition(":")
        parts = [each.strip() for each in numbers.split(",")] if colon else []
        if not topic or not all(each.isdecimal() and each.isascii() for each in parts):
            raise ConfigError(
                f"--topic {text!r} is not TOPIC or TOPIC:PARTITIONS.", hint="Write it like orders, or orders:0,2."
            )
        found[topic] = [int(each) for each in parts] if colon else None
    return Scope(found)


class Offsets:
    """Plans a reset and carries it out. Both raise if the group has members."""

    def __init__(self, cluster: Cluster, *, checkpoint: str | None = None) -> None:
        self._cluster = cluster
        self._groups = Groups(cluster)
        self._logs = Logs(cluster)
        self._id = cluster.id()
        self._backups = OffsetBackups(self._id)
        self._checkpoint = checkpoint

    def committed(self, names: Sequence[str]) -> dict[str, Commits]:
        return _settled(self._progress(describe(self._cluster, names)))

    def _progress(
        self, described: Mapping[str, GroupDescription | PenstockError]
    ) -> dict[str, Mapping[TopicPartition, CommittedOffset | None]]:
        shared = {name for name, each in described.items() if isinstance(each, GroupDescription) and each.is_shared}
        answers: dict[str, Mapping[TopicPartition, CommittedOffset | None] | PenstockError] = {
            **self._groups.committed(name for name in described if name not in shared),
            **(self._shared_progress(shared) if shared else {}),
        }
        found: dict[str, Mapping[TopicPartition, CommittedOffset | None]] = {}
        for name in described:
            answer = answers[name]
            if isinstance(answer, PenstockError):
                raise answer
            found[name] = answer
        return found

    def _shared_progress(
        self, names: Collection[str]
    ) -> dict[str, Mapping[TopicPartition, CommittedOffset | None] | PenstockError]:
        """Return the start offsets of share groups; the log's end if all is finished, as brokers may lag."""
        with share_groups(self._cluster) as shared:
            tps = {tp for each in shared.starts(names).values() if isinstance(each, dict) for tp in each}
            # Read the log's end before the lag: records written in between are not finished.
            bounds = require_bounds(self._cluster, tps)
            answers = shared.starts(names)

        def start(tp: TopicPartition, known: CommittedOffset | None) -> CommittedOffset | None:
            if known is None or tp not in bounds:
                return None
            return CommittedOffset(bounds[tp].end if known.lag == 0 else known.offset)

        return {
            name: each if isinstance(each, PenstockError) else {tp: start(tp, at) for tp, at in each.items()}
            for name, each in answers.items()
        }

    def plan_reset(
        self, names: Sequence[str], scope: Scope | None, scenario: Scenario, *, reason: str, new_group: bool = False
    ) -> ResetPlan:
        """Plan a reset. Without a scope it covers all committed partitions, or all partitions of a share group."""
        described = self._idle(names, new_group=new_group)
        progress = self._progress(described)
        before = _settled(progress)
        scoped = None if scope is None else self._tps_of(scope)
        wanted = {name: sorted(tps) if scoped is None else scoped for name, tps in progress.items()}
        bounds = require_bounds(self._cluster, (tp for tps in wanted.values() for tp in tps))
        at_time = self._at_time(bounds, scenario)

        def aim(name: str, tp: TopicPartition) -> Target:
            committed = before[name].get(tp)
            log = LogBounds(bounds[tp].start, bounds[tp].end, at_time.get(tp))
            return target(scenario, log, None if committed is None else committed.offset, tp=_shown(tp))

        return self._planned(wanted, before, bounds, described, aim=aim, reason=reason)

    def plan_import(self, wanted: Wanted, *, reason: str, new_group: bool = False) -> ResetPlan:
        described = self._idle(list(wanted), new_group=new_group)
        before = _settled(self._progress(described))
        named: dict[str, list[int]] = {}
        for topic, number in (tp for offsets in wanted.values() for tp in offsets):
            named.setdefault(topic, []).append(number)
        self._tps_of(Scope(named))
        bounds = require_bounds(self._cluster, (tp for offsets in wanted.values() for tp in offsets))

        def aim(name: str, tp: TopicPartition) -> Target:
            return clamped(LogBounds(bounds[tp].start, bounds[tp].end), wanted[name][tp])

        tps = {name: sorted(offsets) for name, offsets in wanted.items()}
        return self._planned(tps, before, bounds, described, aim=aim, reason=reason)

    def plan_undo(self, name: str) -> tuple[ResetPlan, OffsetBackup]:
        backup = self._backups.newest(name)
        described = self._idle([name], new_group=True)
        before = _settled(self._progress(described))
        bounds = {tp: each for tp, each in self._logs.bounds(backup.touched).items() if isinstance(each, Bounds)}
        gone = [tp for tp in backup.touched if tp not in bounds]
        moves = [
            _move(name, tp, before[name].get(tp), backup.before.get(tp), bounds[tp])
            for tp in backup.touched
            if tp in bounds
        ]
        warnings = [f"{_shown(tp)} no longer answers, so its offset is not restored." for tp in gone]
        plan = ResetPlan("undo", tuple(moves), before, self._checkpoints([name]), tuple(warnings))
        return self._with_spans(plan, described), backup

    def carry_out(self, plan: ResetPlan, *, undoing: OffsetBackup | None = None) -> list[OffsetBackup]:
        """Save the old offsets, set the new ones, and move Spark's checkpoints aside."""
        described = self._idle(plan.groups, new_group=True)
        backups = []
        for name in plan.groups:
            moves = [move for move in plan.moves if move.group == name]
            if undoing is None:
                touched = [move.tp for move in moves]
                backups.append(self._backups.write(name, reason=plan.reason, touched=touched, before=plan.before[name]))
            apply = self._apply_shared if described[name].is_shared else self._apply
            apply(name, moves, plan.before[name], reason=plan.reason)
            for checkpoint in plan.checkpoints.get(name, ()):
                checkpoint.set_aside()
        if undoing is not None:
            self._backups.mark_undone(undoing)
        return backups

    def _apply(self, name: str, moves: Sequence[OffsetMove], before: Commits, *, reason: str) -> None:
        commits = {move.tp: move.new for move in moves if move.new is not None}
        removed = {move.tp for move in moves if move.new is None and move.old is not None}
        if removed:
            # The client can delete only the whole group, not one commit. The broker refuses if a member joined.
            kept = {tp: commit for tp, commit in before.items() if tp not in removed}
            self._replace_all(name, {**kept, **commits}, before, reason=reason)
        else:
            self._groups.commit(name, commits)

    def _replace_all(self, name: str, commits: Commits, before: Commits, *, reason: str) -> None:
        """Delete the group and commit again. After a crash in between, `undo` restores the group from a backup."""
        backup = self._backups.write(name, reason=reason, touched=before, before=before)
        failure = self._groups.delete([name])[name]
        if failure is not None:
            self._backups.mark_undone(backup)
            raise failure
        self._groups.commit(name, commits)
        self._backups.mark_undone(backup)

    def _apply_shared(self, name: str, moves: Sequence[OffsetMove], before: Commits, *, reason: str) -> None:
        starts = {move.tp: move.new.offset for move in moves if move.new is not None}
        removed = {move.tp for move in moves if move.new is None and move.old is not None}
        topics = {topic for topic, _ in removed}
        with share_groups(self._cluster) as shared:
            if not removed:
                shared.set_starts(name, starts)
                return
            # The start offset of a partition can only be deleted together with those of its whole topic.
            kept = {tp: each.offset for tp, each in before.items() if tp[0] in topics and tp not in removed}
            backup = self._backups.write(name, reason=reason, touched=before, before=before)
            shared.forget_starts(name, topics)
            shared.set_starts(name, {**kept, **starts})
            self._backups.mark_undone(backup)

    def _idle(self, names: Sequence[str], *, new_group: bool) -> dict[str, GroupDescription]:
        """Return the descriptions. Raise if a group has members: they would overwrite the new offsets."""
        found: dict[str, GroupDescription] = {}
        for name, described in describe(self._cluster, names).items():
            if isinstance(described, PenstockError):
                raise described
            if described.is_active:
                raise StateError(
                    f"Group {name!r} is active ({described.state}): {_members(described)}.",
                    hint="Nothing was changed. Stop its members first.",
                )
            if not described.exists and not new_group:
                raise no_group(
                    name,
                    self._cluster,
                    hint="`penstock groups ls` lists them. To create the group with these offsets, add --new-group.",
                )
            found[name] = described
        return found

    def _tps_of(self, scope: Scope) -> list[TopicPartition]:
        counts = self._cluster.require_topics(scope.topics)
        tps = []
        for topic, numbers in scope.topics.items():
            for number in range(counts[topic]) if numbers is None else numbers:
                if number >= counts[topic]:
                    raise TopicError(
                        f"Topic {topic!r} has no partition {number}.",
                        hint=f"It has {counts[topic]}, from 0 to {counts[topic] - 1}.",
                    )
                tps.append((topic, number))
        return sorted(set(tps))

    def _at_time(self, tps: Iterable[TopicPartition], scenario: Scenario) -> dict[TopicPartition, int | None]:
        if scenario.to is not To.TIME:
            return {}
        found = {}
        for (tp, _), answer in self._logs.at_times((tp, scenario.number / 1000) for tp in tps).items():
            if not isinstance(answer, Found):
                raise answer
            found[tp] = answer.offset
        return found

    def _planned(
        self,
        wanted: Mapping[str, Sequence[TopicPartition]],
        before: Mapping[str, Commits],
        bounds: Mapping[TopicPartition, Bounds],
        described: Mapping[str, GroupDescription],
        *,
        aim: Callable[[str, TopicPartition], Target],
        reason: str,
    ) -> ResetPlan:
        moves = []
        for name, tps in wanted.items():
            for tp in tps:
                aimed = aim(name, tp)
                old = before[name].get(tp)
                # Without metadata: the offset map names finished records, which a reset is meant to repeat.
                moves.append(_move(name, tp, old, CommittedOffset(aimed.offset), bounds[tp], note=aimed.note))
        if not moves:
            raise StateError(
                f"Nothing is committed for {', '.join(wanted)}, so there is nothing to reset.",
                hint="Name the topics with --topic.",
            )
        plan = ResetPlan(reason, tuple(moves), before, self._checkpoints(wanted))
        return self._with_spans(plan, described)

    def _checkpoints(self, names: Iterable[str]) -> dict[str, list[SparkCheckpoint]]:
        found = {name: spark_checkpoints(name, cluster_id=self._id, root=self._checkpoint) for name in names}
        return {name: each for name, each in found.items() if each}

    def _with_spans(self, plan: ResetPlan, described: Mapping[str, GroupDescription]) -> ResetPlan:
        ends = {move: _ends(move) for move in plan.moves}
        times = times_at(self._cluster, {spot for pair in ends.values() if pair is not None for spot in pair})
        moves = []
        for move, pair in ends.items():
            first, last = (None, None) if pair is None else (times.get(pair[0]), times.get(pair[1]))
            span = None if first is None or last is None else (first, last)
            moves.append(OffsetMove(move.group, move.tp, move.old, move.new, move.effect, span, move.note))
        warnings = [
            f"No member has ever joined {name!r}. If a Spark pipeline uses it elsewhere or with --checkpoint, the "
            "pipeline continues from that checkpoint: move it aside too."
            for name, each in described.items()
            if each.exists and each.simple and name not in plan.checkpoints
        ]
        warnings += [
            f"{name!r} is a share group: brokers do not say which records above a start offset are finished, so they "
            "are redelivered too."
            for name, each in described.items()
            if each.is_shared
        ]
        return ResetPlan(plan.reason, tuple(moves), plan.before, plan.checkpoints, (*plan.warnings, *warnings))


def _settled(progress: Mapping[str, Mapping[TopicPartition, CommittedOffset | None]]) -> dict[str, Commits]:
    """Leave out partitions without a commit, such as those that a share group has not read yet."""
    return {name: {tp: each for tp, each in found.items() if each is not None} for name, found in progress.items()}


def _move(
    name: str,
    tp: TopicPartition,
    old: CommittedOffset | None,
    new: CommittedOffset | None,
    bounds: Bounds,
    *,
    note: str = "",
) -> OffsetMove:
    finished = [] if old is None or (new is not None and new.metadata) else offset_map_of(old)
    count = Effect(0, 0)
    if old is not None and new is not None:
        count = effect(old.offset, new.offset, LogBounds(bounds.start, bounds.end), finished)
    return OffsetMove(name, tp, old, new, count, note=note)


def _ends(move: OffsetMove) -> tuple[tuple[str, int, int], tuple[str, int, int]] | None:
    """Return the first and the last offset that is repeated or skipped."""
    if move.old is None or move.new is None or move.old.offset == move.new.offset:
        return None
    low, high = sorted((move.old.offset, move.new.offset))
    return (*move.tp, low), (*move.tp, high - 1)


def _shown(tp: TopicPartition) -> str:
    return f"{tp[0]}-{tp[1]}"


def _members(described: GroupDescription) -> str:
    most = 5
    names = [f"{each.client} at {each.host.lstrip('/')} ({each.id})" for each in described.members]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return (", ".join(names[:most]) or "a rebalance is in progress") + more
