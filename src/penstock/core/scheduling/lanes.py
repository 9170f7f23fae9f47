"""Lanes: records that must run in order. And epochs, which own them."""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from penstock.core.failures.outcome import Outcome
from penstock.core.progress.commit_gate import CommitGate
from penstock.core.progress.offset_map import MAX_BODY_BYTES
from penstock.core.progress.tracker import Tracker
from penstock.core.records.record import TopicPartition

Order = Literal["partition", "key", "none"]

# Within this many offsets of the commit point a bitmap of what is finished always fits into a commit.
BITMAP_SPAN = 8 * MAX_BODY_BYTES
# And this many finished ranges always fit as runs, even if four billion offsets lie between the first and the last.
MAX_RANGES = 380


# Here a record is whatever the engine reads and its workers take: the rules look only at its offset and its key.
AnyRecord = Any


@dataclass(eq=False, slots=True)
class Lane:
    """Records that must run one at a time, in the order of their offsets; or, if not ``ordered``, in any way."""

    epoch: "Epoch"
    key: Hashable
    ordered: bool = True
    waiting: deque[AnyRecord] = field(default_factory=deque)
    held: bool = False  # a worker has it, or a retry waits for its time
    mixed: bool = False  # of several keys: what stands behind a record may overtake it, unless it has its key

    def take(self, limit: int) -> list[AnyRecord]:
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
    records: list[AnyRecord]
    outcomes: list[Outcome] = field(default_factory=list)
    done: bool = False
    taken: int = 0
    before: "Run | None" = None  # what this one was split from; its worker may still be at the last record of that

    @property
    def epoch(self) -> "Epoch":
        return self.lane.epoch

    def split(self, tail: list[AnyRecord]) -> "Run":
        """A run of its own for these last records, which nobody has begun."""
        del self.records[len(self.records) - len(tail) :]
        self.epoch.running += 1
        return Run(self.lane, tail, before=self)


@dataclass(eq=False, slots=True)
class Epoch:
    """One ownership of one partition, from assigned to revoked.

    ``dispatching`` is read by workers between records: once it is False, they start no further one. While
    ``rewinding``, records still come from before the fetcher went back, and are dropped: they will come again.
    """

    tp: TopicPartition
    number: int
    tracker: Tracker
    committed: tuple[int, str] | None  # offset and metadata, as the broker has them
    lanes: dict[Hashable, Lane] = field(default_factory=dict)  # those with records that wait or run
    whole: bool = False  # all keys share one mixed lane for now
    whole_from: int = 0  # and do so again from this offset on at the earliest
    failures: dict[int, int] = field(default_factory=dict)  # attempts that failed, by offset, of what is unfinished
    dispatching: bool = True
    paused: bool = False  # by back-pressure
    rewinding: bool = False
    wake_at: float | None = None  # of a retry topic: when the record it waits for is due
    rewind_to: int | None = None  # where that record is, until the fetcher is told to go back to it
    running: int = 0  # runs that workers hold
    in_progress: int = 0  # records in those runs
    held: dict[int, AnyRecord] = field(default_factory=dict)  # handled, and waiting to be acknowledged, by offset
    acked: dict[int, AnyRecord] = field(default_factory=dict)  # acknowledged before their handler was known to return
    sending: int = 0  # outputs and dead letters that the broker has not acknowledged yet
    restored_up_to: int = -1  # the highest offset that an earlier epoch finished
    highest_taken: int = -1  # the highest offset that a worker ever had
    bitmap_end: int = 0  # below this offset everything fits into a bitmap, as far as was looked
    ranges: int = 0  # at most so many finished ranges lie above the commit point
    ranges_counted: bool = False  # just so many, since nothing was finished after they were counted
    parked: list[Lane] = field(default_factory=list)  # lanes that wait because the offset map might not fit
    parked_at: int | None = None  # the commit point when the first of them was parked
    gate: CommitGate | None = None  # at most once: where records wait until they are committed
    excesses: dict[int, int] = field(default_factory=dict)  # of large values that are unfinished, by offset, in bytes
    excess: int = 0  # of all of these

    @property
    def drained(self) -> bool:
        # What is committed ahead is handled here or nowhere.
        committed = self.gate is not None and (self.gate or self.lanes)
        return not self.running and not self.sending and not self.held and not committed

    @property
    def is_open(self) -> bool:
        """Whether what is fetched now belongs to it; else that is dropped, and will come again."""
        return self.dispatching and not self.rewinding and not (self.gate is not None and self.gate.is_shut)

    def stop(self) -> None:
        """No further record of it starts, but for those that are committed; what is with workers still counts."""
        if self.gate is not None:
            self.gate.shut()
        else:
            self.end()

    def end(self) -> None:
        """No further record of it starts."""
        self.dispatching = False
        for lane in self.lanes.values():
            lane.waiting.clear()
        self.lanes.clear()
        self.parked.clear()

    def weigh(self, excesses: Mapping[int, int]) -> int:
        """These values are large; returns by how many bytes."""
        self.excesses.update(excesses)
        more = sum(excesses.values())
        self.excess += more
        return more

    def lighten(self, offsets: Iterable[int]) -> int:
        """These are in flight no more; returns how many bytes of large values that frees."""
        freed = sum(self.excesses.pop(offset, 0) for offset in offsets)
        self.excess -= freed
        return freed

    def attempt_at(self, offset: int) -> int:
        """Which attempt at this record is next, or under way."""
        return self.failures.get(offset, 0) + 1

    def map_room(self, lane: Lane, wanted: int, offset_of: Callable[[AnyRecord], int]) -> int:
        """How many of the first ``wanted`` records of this lane may start, so that each map that can follow fits.

        Either all that is finished or may soon be lies close enough to the commit point for a bitmap, or there are
        few enough ranges: each record that is open can add one.
        """
        last = offset_of(lane.waiting[wanted - 1])
        if max(last, self.highest_taken) < self.bitmap_end:
            return wanted
        # The commit point may have moved on since it was looked at; it never goes back.
        point = self.tracker.commit_point
        if point is None:
            return wanted
        self.bitmap_end = point + BITMAP_SPAN
        if self.highest_taken < self.bitmap_end:
            # What was given back lies below the highest taken, and the rest of a lane ascends.
            near = bisect_left(lane.waiting, self.bitmap_end, hi=wanted, key=offset_of)
            if near:
                return near
        return min(wanted, self._range_room(wanted))

    def _range_room(self, wanted: int) -> int:
        open_records = self.in_progress + self.sending + len(self.held)
        hopeless = open_records >= MAX_RANGES
        if self.ranges + open_records + wanted > MAX_RANGES and not hopeless and not self.ranges_counted:
            # Counting takes a while, so it is done only where the bound says no, and once for each state.
            self.ranges, self.ranges_counted = self.tracker.count_finished_ranges(), True
        return max(0, MAX_RANGES - self.ranges - open_records)

    def park(self, lane: Lane) -> None:
        """This lane waits for room in the offset map. A record at the commit point is never parked."""
        if not self.parked:
            self.parked_at = self.tracker.commit_point
        self.parked.append(lane)

    def unpark(self) -> list[Lane]:
        """The lanes that waited, where something may fit by now."""
        if not self.parked or (self.tracker.commit_point == self.parked_at and not self._range_room(1)):
            return []
        lanes, self.parked = self.parked, []
        return lanes
