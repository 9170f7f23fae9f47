"""The status of a group on one partition, by Burrow's rules: they look at its last commits, not at a lag threshold.

Burrow's rules need a window of commits: a single commit looks stopped and stalled at the same time. So with fewer than
``MIN_COMMITS`` commits the status is OK, unless we know that the group has committed nothing for a long time.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise

MIN_COMMITS = 3


class Status(IntEnum):
    """From good to bad, in the order of the values."""

    OK = 0
    WARN = 1
    STALL = 2
    STOP = 3
    REWIND = 4


@dataclass(frozen=True, slots=True)
class CommitSeen:
    """One commit: its time and offset, the lag at that time (None if unknown), and the finished records above it."""

    at: float
    offset: int
    lag: int | None = None
    finished_above: int = 0

    @property
    def done(self) -> tuple[int, int]:
        """A value that grows with every finished record, even while the commit point does not move."""
        return self.offset, self.finished_above


@dataclass(frozen=True, slots=True)
class Silence:
    """``__consumer_offsets``, read back over ``seconds``, has no commit of the group; ``lag`` was its lag back then."""

    seconds: float
    lag: int


@dataclass(frozen=True, slots=True)
class Verdict:
    status: Status
    reason: str = ""


def evaluate(  # noqa: PLR0911 - one return for each of the rules, in their order
    commits: Sequence[CommitSeen],
    *,
    lag: int,
    now: float,
    recent_ends: Iterable[int] = (),
    silence: Silence | None = None,
    least: int = MIN_COMMITS,
) -> Verdict:
    """The status of the partition, by the first rule that applies.

    ``lag`` is the current lag, ``recent_ends`` are the end offsets of the partition that were sampled last, and
    ``least`` is the number of commits below which only "no commits at all" is judged.
    """
    if lag <= 0:
        return Verdict(Status.OK, "caught up")
    if not commits and silence is not None and silence.lag > 0:
        return Verdict(Status.STOP, f"no commit for more than {silence.seconds:.0f} s, although there was lag")
    if len(commits) < least:
        return Verdict(Status.OK, f"too few commits to judge ({len(commits)} of {least})")
    if _stopped(commits, now) and not any(end <= commits[-1].offset for end in recent_ends):
        return Verdict(Status.STOP, f"no commit for {now - commits[-1].at:.0f} s")
    known = [each for each in commits if each.lag is not None]
    if any(each.lag == 0 for each in known):
        return Verdict(Status.OK, "caught up within the window")
    if any(later.offset < earlier.offset for earlier, later in pairwise(commits)):
        return Verdict(Status.REWIND, "a commit went backwards")
    if all(later.done == earlier.done for earlier, later in pairwise(commits)):
        return Verdict(Status.STALL, "commits do not advance")
    if len(known) > 1 and all((later.lag or 0) >= (earlier.lag or 0) for earlier, later in pairwise(known)):
        return Verdict(Status.WARN, "commits advance, but the lag does not shrink")
    return Verdict(Status.OK, "")


def worst(statuses: Iterable[Status]) -> Status:
    return max(statuses, default=Status.OK)


def thinned(commits: Sequence[CommitSeen], most: int) -> list[CommitSeen]:
    """About ``most`` of the commits, evenly spaced.

    It always keeps the first, the last, and each commit that went backwards together with the one before it.
    """
    if len(commits) <= most:
        return list(commits)
    step = (len(commits) - 1) / (most - 1)
    chosen = {round(index * step) for index in range(most)}
    for index, (earlier, later) in enumerate(pairwise(commits)):
        if later.offset < earlier.offset:
            chosen |= {index, index + 1}
    return [commits[index] for index in sorted(chosen)]


def _stopped(commits: Sequence[CommitSeen], now: float) -> bool:
    """Whether the time since the last commit is longer than the whole window of commits."""
    return now - commits[-1].at > commits[-1].at - commits[0].at
