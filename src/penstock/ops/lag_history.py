"""The lag of groups in the past: what they had committed at that time, and where the logs ended then.

Kafka compacts ``__consumer_offsets``, so old commits disappear. Where they are missing, the lag is unknown.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from penstock.core.progress.commit_log import CommitValue
from penstock.core.records.record import TopicPartition
from penstock.errors import PenstockError
from penstock.kafka.admin.cluster import Cluster
from penstock.kafka.admin.log_bounds import Found, Logs
from penstock.kafka.read.consumer_offsets import commit_history
from penstock.ops.group_lag import GroupLag, PartitionLag, positions

_HISTORY_SECONDS = 6.0
_LEAST_POINTS = 6
# How many offsets are looked up by time at most.
_MAX_LOOKUPS = 6_000

Commits = Sequence[tuple[float, CommitValue]]


@dataclass(frozen=True)
class LagPoint:
    """The lag of a group at a time; None where it is not known."""

    at: float
    lag: int | None


def lag_history(
    cluster: Cluster, names: Iterable[str], *, now: float, seconds: float, points: int
) -> dict[str, list[LagPoint]]:
    """Return the lag of each group at evenly spaced times until now; groups that cannot be read are left out.

    For groups with many partitions there are fewer points.
    """
    groups = {name: each for name, each in positions(cluster, names).items() if isinstance(each, GroupLag)}
    parts = {part.tp: part for each in groups.values() for part in each.partitions if part.end is not None}
    count = max(_LEAST_POINTS, min(points, _MAX_LOOKUPS // max(1, len(parts))))
    step = seconds / (count - 1)
    times = [now - seconds + step * index for index in range(count)]
    history = commit_history(cluster, groups, since=times[0] - step, seconds=_HISTORY_SECONDS)
    if history is None:
        return {}
    answers = Logs(cluster).at_times((tp, at) for tp in parts for at in times[:-1])
    ends = [{tp: _end(part, answers.get((tp, at))) for tp, part in parts.items()} for at in times[:-1]]
    return {
        name: [
            LagPoint(at, _total(each.partitions, history.get(name, {}), then, at, step))
            for at, then in zip(times[:-1], ends, strict=True)
        ]
        + [LagPoint(now, each.lag)]
        for name, each in groups.items()
        if not each.group.is_shared
    }


def _end(part: PartitionLag, answer: Found | PenstockError | None) -> int | None:
    if not isinstance(answer, Found):
        return None
    # No record is younger than that time: the log had its current end already.
    return part.end if answer.offset is None else answer.offset


def _total(
    parts: Iterable[PartitionLag],
    commits: Mapping[TopicPartition, Commits],
    ends: Mapping[TopicPartition, int | None],
    at: float,
    step: float,
) -> int | None:
    total = 0
    for part in parts:
        if part.committed is None or part.tp not in ends:
            continue
        end = ends[part.tp]
        committed = committed_at(commits.get(part.tp, ()), at, now=part.committed, step=step)
        if end is None or committed is None:
            return None
        total += max(0, end - max(committed, 0))
    return total


def committed_at(commits: Commits, at: float, *, now: int, step: float) -> int | None:
    """Return the committed offset at a time, by the commits that are known, oldest first; None if it is not known.

    A partition without any commit since then has the offset that it has now. Shortly before the first known commit,
    within ``step``, the offset is taken to be that of the commit.
    """
    if not commits:
        return now
    index = bisect_right(commits, at, key=lambda each: each[0])
    if index:
        return commits[index - 1][1].offset
    first, value = commits[0]
    return value.offset if first - at <= step else None
