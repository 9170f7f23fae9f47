"""How many records a second a member can handle, from the commits of its group, where nobody measures its handlers.

Commits show it only while records wait: a member without a backlog is as slow as the arrivals.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from penstock.core.progress.lag_status import CommitSeen
from penstock.core.scheduling.recommended_members import NORMAL_SECONDS


@dataclass(frozen=True)
class PartitionRates:
    """Records a second that the group finished in a partition; None if unknown.

    ``finished`` is the rate at any time, ``finished_behind`` that while the partition had a backlog.
    """

    member: str
    finished: float | None
    finished_behind: float | None


def rate_while_behind(commits: Sequence[CommitSeen], arrivals: float) -> float | None:
    """Return the rate between neighbouring commits that both had a backlog; None if there are none.

    ``arrivals`` is how many records arrive a second: what arrives in ``NORMAL_SECONDS`` is no backlog.
    """
    done, seconds = 0, 0.0
    for earlier, later in pairwise(commits):
        finished = sum(later.done) - sum(earlier.done)
        if finished >= 0 and _is_behind(earlier, arrivals) and _is_behind(later, arrivals):
            done += finished
            seconds += later.at - earlier.at
    return done / seconds if seconds > 0 else None


def _is_behind(commit: CommitSeen, arrivals: float) -> bool:
    return commit.lag is not None and commit.lag > arrivals * NORMAL_SECONDS


def throughput_of_a_member(partitions: Iterable[PartitionRates]) -> float | None:
    """Return the mean of the members that were behind with at least one partition; None if none was.

    The other partitions of such a member count with what it finished there meanwhile.
    """
    by_member: dict[str, list[PartitionRates]] = {}
    for each in partitions:
        by_member.setdefault(each.member, []).append(each)
    rates = [
        sum(each.finished or 0.0 if each.finished_behind is None else each.finished_behind for each in owned)
        for owned in by_member.values()
        if any(each.finished_behind is not None for each in owned)
    ]
    return sum(rates) / len(rates) if rates else None
