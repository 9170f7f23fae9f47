"""Computes the lag of groups in records and seconds, their rates and their status."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from penstock.core.progress.commit_log import CommitValue
from penstock.core.progress.lag_status import CommitSeen, Silence, Status, Verdict, evaluate, thinned, worst
from penstock.core.progress.offset_map import UnreadableMapError, decode
from penstock.core.records.record import TopicPartition
from penstock.core.scheduling.member_throughput import rate_while_behind
from penstock.errors import PenstockError
from penstock.kafka.admin.cluster import Cluster
from penstock.kafka.admin.consumer_groups import CommittedOffset, DescribedMember, GroupDescription
from penstock.kafka.admin.log_bounds import Bounds, Found, Logs, Moment
from penstock.kafka.read.consumer_offsets import History, commit_history, times_at
from penstock.ops.groups_of_any_kind import committed as committed_by
from penstock.ops.groups_of_any_kind import describe

WINDOW_SECONDS = 300.0
_RATE_SECONDS = 60.0
# Records younger than this do not count as lag for the status: no consumer can have handled them yet.
_RECENT_SECONDS = 10.0
_COMMITS = 10
_HISTORY_SECONDS = 6.0

_Answers = Mapping[Moment, Found | PenstockError]


@dataclass(frozen=True)
class PartitionLag:
    """One partition of a group. None means unknown."""

    topic: str
    partition: int
    committed: int | None = None
    start: int | None = None
    end: int | None = None
    member: DescribedMember | None = None
    finished_above: int = 0
    is_shared: bool = False
    counted_lag: int | None = None
    """Only for share groups: the lag as brokers count it."""
    lag_seconds: float | None = None
    span_seconds: float | None = None
    rate_in: float | None = None
    rate_out: float | None = None
    rate_behind: float | None = None
    """Like ``rate_out``, but only from the time in which the partition had a backlog."""
    commit_age: float | None = None
    verdict: Verdict = field(default_factory=lambda: Verdict(Status.OK))
    error: str = ""

    @property
    def tp(self) -> TopicPartition:
        return self.topic, self.partition

    @property
    def lag(self) -> int | None:
        """Records in the log from the commit on; for a share group, the unfinished records."""
        if self.counted_lag is not None:
            return self.counted_lag
        if self.committed is None or self.start is None or self.end is None:
            return None
        return max(0, self.end - max(self.committed, self.start))

    @property
    def first_unfinished(self) -> int | None:
        """The offset of the first unfinished record. For a share group this assumes that records finish in order."""
        if self.counted_lag is not None and self.end is not None:
            return max(self.committed or 0, self.end - self.counted_lag)
        return None if self.lag is None else max(self.committed or 0, self.start or 0)

    @property
    def unfinished(self) -> int | None:
        """The lag without the records that are finished above the commit."""
        return None if self.lag is None else max(0, self.lag - self.finished_above)

    @property
    def lost(self) -> int:
        """Records that retention deleted before the group committed them.

        Unknown for a share group, whose start offset the brokers update only now and then.
        """
        if self.is_shared:
            return 0
        return 0 if self.committed is None or self.start is None else max(0, self.start - self.committed)

    @property
    def drain_seconds(self) -> float | None:
        """Seconds until the lag is 0 at the current rates; None if it does not shrink, or is unknown."""
        if self.unfinished == 0:
            return 0.0
        if self.unfinished is None or self.rate_in is None or self.rate_out is None or self.rate_out <= self.rate_in:
            return None
        return self.unfinished / (self.rate_out - self.rate_in)


@dataclass(frozen=True)
class GroupLag:
    group: GroupDescription
    partitions: tuple[PartitionLag, ...]

    @property
    def lag(self) -> int:
        return sum(each.lag or 0 for each in self.partitions)

    @property
    def lag_seconds(self) -> float | None:
        return max((each.lag_seconds for each in self.partitions if each.lag_seconds is not None), default=None)

    @property
    def lost(self) -> int:
        return sum(each.lost for each in self.partitions)

    @property
    def status(self) -> Status:
        return worst(each.verdict.status for each in self.partitions)


def survey(
    cluster: Cluster, names: Iterable[str], *, now: float, window: float = WINDOW_SECONDS
) -> dict[str, GroupLag | PenstockError]:
    """Compute lag, rates and status of these groups. A group that fails does not affect the others."""
    names = list(dict.fromkeys(names))
    found = positions(cluster, names)
    alive = {name: each for name, each in found.items() if isinstance(each, GroupLag)}
    with_history = [name for name, each in alive.items() if not each.group.is_shared]
    history = commit_history(cluster, with_history, since=now - window, seconds=_HISTORY_SECONDS)
    answers = _ask_times(cluster, alive, history, now=now, window=window)
    waiting = {
        (each.topic, each.partition, each.first_unfinished)
        for group in alive.values()
        for each in group.partitions
        if each.lag and each.first_unfinished is not None
    }
    times = times_at(cluster, waiting)
    newest = Logs(cluster).newest({(topic, partition) for topic, partition, _ in times})
    for name, group in alive.items():
        commits = None if history is None else history.get(name)
        partitions = []
        for each in group.partitions:
            timed = _timed(each, times, newest.get(each.tp), now)
            partitions.append(_judged(timed, commits, answers, now=now, window=window))
        if group.group.is_shared:
            partitions = [_judged_by_state(each, group.group) for each in partitions]
        found[name] = replace(group, partitions=tuple(partitions))
    return found


def positions(cluster: Cluster, names: Iterable[str]) -> dict[str, GroupLag | PenstockError]:
    """Return members, commits and log bounds, with a few requests for any number of groups."""
    names = list(names)
    described = describe(cluster, names)
    committed = committed_by(cluster, described)
    owners = {name: _owners(each) for name, each in described.items() if isinstance(each, GroupDescription)}
    tps = {tp for each in committed.values() if not isinstance(each, PenstockError) for tp in each}
    tps |= {tp for each in owners.values() for tp in each}
    bounds = Logs(cluster).bounds(tps)
    found: dict[str, GroupLag | PenstockError] = {}
    for name in names:
        description, commits = described[name], committed[name]
        if isinstance(description, PenstockError):
            found[name] = description
        elif isinstance(commits, PenstockError):
            found[name] = commits
        else:
            mine = sorted({*commits, *owners[name]})
            partitions = (_partition(each, commits.get(each), bounds[each], owners[name].get(each)) for each in mine)
            shared = description.is_shared
            found[name] = GroupLag(description, tuple(replace(each, is_shared=shared) for each in partitions))
    return found


def _owners(description: GroupDescription) -> dict[TopicPartition, DescribedMember | None]:
    """Return the assigned partitions with their owners; None for a share group, whose members share partitions."""
    if description.is_shared:
        return {tp: None for member in description.members for tp in member.partitions}
    return {tp: member for member in description.members for tp in member.partitions}


def _partition(
    tp: TopicPartition, commit: CommittedOffset | None, bounds: Bounds | PenstockError, member: DescribedMember | None
) -> PartitionLag:
    known = PartitionLag(*tp, committed=None if commit is None else commit.offset, member=member)
    if isinstance(bounds, PenstockError):
        return replace(known, error=bounds.problem)
    above = 0 if commit is None else finished_above(commit)
    counted = None if commit is None else commit.lag
    return replace(known, start=bounds.start, end=bounds.end, finished_above=above, counted_lag=counted)


def finished_above(commit: CommittedOffset) -> int:
    return sum(end - start for start, end in offset_map_of(commit))


def offset_map_of(commit: CommittedOffset) -> list[tuple[int, int]]:
    """Return the ranges of Penstock's offset map; none if the metadata is something else."""
    try:
        return decode(commit.offset, commit.metadata)
    except UnreadableMapError:
        return []


def _ask_times(
    cluster: Cluster, groups: Mapping[str, GroupLag], history: History | None, *, now: float, window: float
) -> _Answers:
    """Ask where the logs ended at all the times that rates and statuses need, in one request."""
    moments: set[Moment] = set()
    for name, group in groups.items():
        for each in group.partitions:
            if each.end is None:
                continue
            moments |= {(each.tp, now - seconds) for seconds in (_RATE_SECONDS, _RECENT_SECONDS, window)}
            commits = (history or {}).get(name, {}).get(each.tp, [])
            moments |= {(each.tp, seen.at) for seen in _seen(commits)}
    return Logs(cluster).at_times(moments)


def _seen(commits: Sequence[tuple[float, CommitValue]]) -> list[CommitSeen]:
    whole = [
        CommitSeen(at, value.offset, finished_above=finished_above(CommittedOffset(value.offset, value.metadata)))
        for at, value in commits
    ]
    return thinned(whole, _COMMITS)


def _timed(each: PartitionLag, times: Mapping[tuple[str, int, int], float], newest: object, now: float) -> PartitionLag:
    if not each.lag:
        return replace(each, lag_seconds=0.0, span_seconds=0.0) if each.lag == 0 else each
    first = times.get((each.topic, each.partition, each.first_unfinished or 0))
    if first is None:
        return each
    last = newest.timestamp_ms if isinstance(newest, Found) else None
    span = None if last is None else max(0.0, last / 1000 - first)
    return replace(each, lag_seconds=max(0.0, now - first), span_seconds=span)


def _judged(
    each: PartitionLag,
    history: Mapping[TopicPartition, Sequence[tuple[float, CommitValue]]] | None,
    answers: _Answers,
    *,
    now: float,
    window: float,
) -> PartitionLag:
    if each.end is None or each.start is None:
        return each
    log_end = each.end

    def end_at(moment: float) -> int | None:
        answer = answers.get((each.tp, moment))
        if not isinstance(answer, Found):
            return None
        return log_end if answer.offset is None else answer.offset

    before = end_at(now - _RATE_SECONDS)
    judged = replace(each, rate_in=None if before is None else (log_end - before) / _RATE_SECONDS)
    if history is None or each.committed is None:
        return judged
    commits = [replace(seen, lag=_lag_then(seen, end_at(seen.at))) for seen in _seen(history.get(each.tp, []))]
    silence = _silence(each.committed, end_at(now - window), window)
    recent = end_at(now - _RECENT_SECONDS)
    verdict = evaluate(
        commits,
        lag=each.unfinished or 0,
        now=now,
        recent_ends=() if recent is None else (recent,),
        silence=silence,
    )
    age = now - commits[-1].at if commits else None
    return replace(
        judged,
        rate_out=_rate_out(commits, now),
        rate_behind=rate_while_behind(commits, judged.rate_in or 0.0),
        commit_age=age,
        verdict=verdict,
    )


def _judged_by_state(each: PartitionLag, group: GroupDescription) -> PartitionLag:
    """Judge a share group by its members only: brokers keep no readable history of what it finished."""
    if not each.lag:
        return each
    if not group.members:
        return replace(each, verdict=Verdict(Status.STOP, "records are waiting, and the group has no members"))
    return replace(each, verdict=Verdict(Status.OK, "for a share group only the lag is known, not its history"))


def _lag_then(seen: CommitSeen, end: int | None) -> int | None:
    return None if end is None else max(0, end - seen.offset - seen.finished_above)


def _silence(committed: int, end_then: int | None, window: float) -> Silence | None:
    return None if end_then is None else Silence(window, end_then - committed)


def _rate_out(commits: Sequence[CommitSeen], now: float) -> float | None:
    """Records a second from the first known commit until now, so the rate falls when commits stop."""
    if not commits:
        return 0.0
    first, last = commits[0], commits[-1]
    done = last.offset + last.finished_above - first.offset - first.finished_above
    if len(commits) == 1 or now <= first.at or done < 0:
        return None
    return done / (now - first.at)
