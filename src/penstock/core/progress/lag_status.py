"""How a group is doing with a partition, by Burrow's rules: from its last commits, not from a threshold of lag.

Burrow's rules want a window of commits. One commit alone looks stopped and stalled at once, so below
``MIN_COMMITS`` nothing is said against a partition, unless the log of commits is known to be silent.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise

MIN_COMMITS = 3


class Status(IntEnum):
    """From good to bad; the value orders them."""

    OK = 0
    WARN = 1
    STALL = 2
    STOP = 3
    REWIND = 4


@dataclass(frozen=True, slots=True)
class CommitSeen:
    """One commit: when, up to where, the lag at that time (None where unknown), and what was finished above it."""

    at: float
    offset: int
    lag: int | None = None
    finished_above: int = 0

    @property
    def done(self) -> tuple[int, int]:
        """Grows with every finished record, also while the commit point stands."""
        return self.offset, self.finished_above


@dataclass(frozen=True, slots=True)
class Silence:
    """No commit at all for this long, though that much of the log of commits was read; the lag when it began."""

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
    """``lag`` is that of now, ``recent_ends`` are ends of the log over the last moments."""
    if lag <= 0:
        return Verdict(Status.OK, "caught up")
    if not commits and silence is not None and silence.lag > 0:
        return Verdict(Status.STOP, f"no commit for over {silence.seconds:.0f} s, with lag all the while")
    if len(commits) < least:
        return Verdict(Status.OK, f"too few commits to tell ({len(commits)} of {least})")
    if _stopped(commits, now) and not any(end <= commits[-1].offset for end in recent_ends):
        return Verdict(Status.STOP, f"no commit for {now - commits[-1].at:.0f} s")
    known = [each for each in commits if each.lag is not None]
    if any(each.lag == 0 for each in known):
        return Verdict(Status.OK, "caught up within the window")
    if any(later.offset < earlier.offset for earlier, later in pairwise(commits)):
        return Verdict(Status.REWIND, "a commit went back")
    if all(later.done == earlier.done for earlier, later in pairwise(commits)):
        return Verdict(Status.STALL, "commits do not move")
    if len(known) > 1 and all((later.lag or 0) >= (earlier.lag or 0) for earlier, later in pairwise(known)):
        return Verdict(Status.WARN, "commits move, and the lag does not shrink")
    return Verdict(Status.OK, "")


def worst(statuses: Iterable[Status]) -> Status:
    return max(statuses, default=Status.OK)


def thinned(commits: Sequence[CommitSeen], most: int) -> list[CommitSeen]:
    """At most so many of them, spread evenly; the first and the last always, and each that went back with its eve."""
    if len(commits) <= most:
        return list(commits)
    step = (len(commits) - 1) / (most - 1)
    chosen = {round(index * step) for index in range(most)}
    for index, (earlier, later) in enumerate(pairwise(commits)):
        if later.offset < earlier.offset:
            chosen |= {index, index + 1}
    return [commits[index] for index in sorted(chosen)]


def _stopped(commits: Sequence[CommitSeen], now: float) -> bool:
    """Silent for longer than the commits before it took."""
    return now - commits[-1].at > commits[-1].at - commits[0].at
