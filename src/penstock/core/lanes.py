"""Lanes: records that must run in order. And epochs, which own them."""

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Literal

from penstock.core.offset_map import MAX_BODY_BYTES
from penstock.core.outcome import Outcome
from penstock.core.record import Record, TopicPartition
from penstock.core.tracker import Tracker

Order = Literal["partition", "key", "none"]

# Within this many offsets of the commit point a bitmap of what is finished always fits into a commit.
BITMAP_SPAN = 8 * MAX_BODY_BYTES
# And this many finished ranges always fit as runs, even if four billion offsets lie between the first and the last.
MAX_RANGES = 380


@dataclass(eq=False, slots=True)
class Lane:
    """Records that must run one at a time, in the order of their offsets; or, if not ``ordered``, in any way."""

    epoch: "Epoch"
    key: Hashable
    ordered: bool = True
    waiting: deque[Record] = field(default_factory=deque)
    held: bool = False  # a worker has it, or a retry waits for its time

    def take(self, limit: int) -> list[Record]:
        if len(self.waiting) <= limit:
            records = list(self.waiting)
            self.waiting.clear()
            return records
        return [self.waiting.popleft() for _ in range(limit)]


@dataclass(eq=False, slots=True)
class Run:
    """The head of a lane, on its way to a worker.

    The worker appends an outcome for each record it attempts and sets ``done`` when it attempts no more of them. The
    dispatcher takes outcomes out as they come, and knows by ``taken`` how many it has.
    """

    lane: Lane
    records: list[Record]
    outcomes: list[Outcome] = field(default_factory=list)
    done: bool = False
    taken: int = 0

    @property
    def epoch(self) -> "Epoch":
        return self.lane.epoch


@dataclass(eq=False, slots=True)
class Epoch:
    """One ownership of one partition, from assigned to revoked.

    ``dispatching`` is read by workers between records: once it is False, they start no further one. While
    ``rewinding``, records still come from before the fetcher went back, and are dropped: they will come again.
    """

    place: TopicPartition
    number: int
    tracker: Tracker
    committed: tuple[int, str] | None  # offset and metadata, as the broker has them
    lanes: dict[Hashable, Lane] = field(default_factory=dict)  # those with records that wait or run
    dispatching: bool = True
    paused: bool = False
    rewinding: bool = False
    running: int = 0  # runs that workers hold
    in_progress: int = 0  # records in those runs
    sending: int = 0  # outputs and dead letters that the broker has not acknowledged yet
    restored_up_to: int = -1  # the highest offset that an earlier epoch finished
    highest_taken: int = -1  # the highest offset that a worker ever had
    ranges: int = 0  # at most so many finished ranges lie above the commit point
    parked: list[Lane] = field(default_factory=list)  # lanes that wait because the offset map might not fit

    @property
    def drained(self) -> bool:
        return not self.running and not self.sending

    def map_fits_after(self, offset: int) -> bool:
        """Whether every offset map that can follow from dispatching this offset too fits into a commit.

        Either all that is finished or may soon be lies close enough to the commit point for a bitmap, or there are
        few enough ranges: each record in progress can add one.
        """
        point = self.tracker.commit_point
        if point is None or max(offset, self.highest_taken) < point + BITMAP_SPAN:
            return True
        if self.ranges + self.in_progress + self.sending < MAX_RANGES:
            return True
        # Counting takes a while, so it is done only where the bound says no.
        self.ranges = len(self.tracker.finished_ranges())
        return self.ranges + self.in_progress + self.sending < MAX_RANGES
