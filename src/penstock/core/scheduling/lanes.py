"""Lanes (records that must run in order), runs (what a worker takes from a lane) and epochs (which own the lanes)."""

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

# If all finished offsets are this close to the commit point, they always fit into the commit's metadata as a bitmap.
BITMAP_SPAN = 8 * MAX_BODY_BYTES
# This many finished ranges always fit as ranges, even if four billion offsets lie between the first and the last.
MAX_RANGES = 380


# Each engine passes its own kind of record (a client's message, a row). The rules read only its offset and its key.
AnyRecord = Any


@dataclass(eq=False, slots=True)
class Lane:
    """Records that must run one at a time, in the order of their offsets; if not ``ordered``, in any order."""

    epoch: "Epoch"
    key: Hashable
    ordered: bool = True
    waiting: deque[AnyRecord] = field(default_factory=deque)
    held: bool = False  # a worker has its first records, or its first record waits for a retry
    mixed: bool = False  # has several keys: only records of the same key must wait for each other

    def take(self, limit: int) -> list[AnyRecord]:
        if len(self.waiting) <= limit:
            records = list(self.waiting)
            self.waiting.clear()
            return records
        return [self.waiting.popleft() for _ in range(limit)]


@dataclass(eq=False, slots=True)
class Run:
    """The first records of a lane, in the order in which a worker attempts them.

    The worker appends an outcome for each record that it attempts, and sets ``done`` when it attempts no more of them.
    The dispatcher collects outcomes meanwhile; ``collected`` counts those that it has.
    """

    lane: Lane
    records: list[AnyRecord]
    outcomes: list[Outcome] = field(default_factory=list)
    done: bool = False
    collected: int = 0
    split_from: "Run | None" = None  # a worker may still be busy with the last record of that run

    @property
    def epoch(self) -> "Epoch":
        return self.lane.epoch

    def split(self, tail: list[AnyRecord]) -> "Run":
        """Move these last records, which no worker has begun, to a run of their own."""
        del self.records[len(self.records) - len(tail) :]
        self.epoch.running += 1
        return Run(self.lane, tail, split_from=self)


@dataclass(eq=False, slots=True)
class Epoch:
    """One ownership of one partition, from assigned to revoked or lost.

    Workers read ``dispatching`` before each record: once it is False they start no further one. While ``rewinding``,
    the dispatcher drops the records that arrive: the fetcher read them before it seeked back, and will read them again.
    """

    tp: TopicPartition
    number: int
    tracker: Tracker
    committed: tuple[int, str] | None  # the offset and metadata that the broker has; None: commit in any case
    lanes: dict[Hashable, Lane] = field(default_factory=dict)  # lanes with records that wait or run
    mixed: bool = False  # all keys share one mixed lane
    mixed_again_from: int = 0  # the keys keep their own lanes up to this offset
    failures: dict[int, int] = field(default_factory=dict)  # failed attempts of each unfinished record, by offset
    dispatching: bool = True
    paused: bool = False  # by back-pressure
    rewinding: bool = False
    wake_at: float | None = None  # in a retry topic: when the first record that was not due falls due
    rewind_to: int | None = None  # the offset to seek back to, until the fetcher is asked to
    running: int = 0  # runs that workers hold
    in_progress: int = 0  # records in those runs
    unacked: dict[int, AnyRecord] = field(default_factory=dict)  # handled, but the user has not acknowledged them
    acked_early: dict[int, AnyRecord] = field(default_factory=dict)  # acknowledged before their outcome arrived
    sending: int = 0  # outputs, dead letters and retry records that the broker has not acknowledged yet
    restored_up_to: int = -1  # the highest offset that an earlier epoch finished
    highest_taken: int = -1  # the highest offset that a worker ever had
    bitmap_end: int = 0  # a bitmap holds all offsets below this one
    ranges: int = 0  # an upper bound for the number of finished ranges above the commit point
    ranges_counted: bool = False  # the bound is exact, because no record was finished since the count
    parked: list[Lane] = field(default_factory=list)  # lanes that wait for room in the offset map
    parked_at: int | None = None  # the commit point when the first lane was parked
    gate: CommitGate | None = None  # at most once: records wait here until they are committed
    excesses: dict[int, int] = field(default_factory=dict)  # bytes above ``InFlight.small``, by unfinished offset
    excess: int = 0  # the sum of them

    @property
    def drained(self) -> bool:
        """Whether no record is with a worker, being produced, or waiting for its acknowledgement."""
        # At most once, records in lanes are committed already: if this epoch drops them, they are lost.
        committed = self.gate is not None and (self.gate or self.lanes)
        return not self.running and not self.sending and not self.unacked and not committed

    @property
    def is_open(self) -> bool:
        """Whether it accepts fetched records. If not, they are dropped and will be fetched again."""
        return self.dispatching and not self.rewinding and not (self.gate is not None and self.gate.is_shut)

    def stop(self) -> None:
        """Start no further record, except those that are committed already (at most once).

        The outcomes of records that workers have still count.
        """
        if self.gate is not None:
            self.gate.shut()
        else:
            self.end()

    def end(self) -> None:
        """Start no further record at all."""
        self.dispatching = False
        for lane in self.lanes.values():
            lane.waiting.clear()
        self.lanes.clear()
        self.parked.clear()

    def weigh(self, excesses: Mapping[int, int]) -> int:
        """Add the excesses of large values; returns their sum."""
        self.excesses.update(excesses)
        more = sum(excesses.values())
        self.excess += more
        return more

    def lighten(self, offsets: Iterable[int]) -> int:
        """Remove the excesses of these offsets, which are no longer in flight; returns their sum."""
        freed = sum(self.excesses.pop(offset, 0) for offset in offsets)
        self.excess -= freed
        return freed

    def attempt_at(self, offset: int) -> int:
        """The number of the next or current attempt at this record."""
        return self.failures.get(offset, 0) + 1

    def map_room(self, lane: Lane, wanted: int, offset_of: Callable[[AnyRecord], int]) -> int:
        """How many of the first ``wanted`` records of this lane may start, so that every later offset map fits.

        A map fits in one of two ways: all started offsets are close enough to the commit point for a bitmap; or there
        are few enough finished ranges, where each started record can add one.
        """
        last = offset_of(lane.waiting[wanted - 1])
        if max(last, self.highest_taken) < self.bitmap_end:
            return wanted
        # The commit point may have moved since ``bitmap_end`` was computed; it never goes back.
        point = self.tracker.commit_point
        if point is None:
            return wanted
        self.bitmap_end = point + BITMAP_SPAN
        if self.highest_taken < self.bitmap_end:
            # Records that a worker returned are below ``highest_taken``; the offsets behind them ascend.
            near = bisect_left(lane.waiting, self.bitmap_end, hi=wanted, key=offset_of)
            if near:
                return near
        return min(wanted, self._range_room(wanted))

    def _range_room(self, wanted: int) -> int:
        open_records = self.in_progress + self.sending + len(self.unacked)
        hopeless = open_records >= MAX_RANGES
        if self.ranges + open_records + wanted > MAX_RANGES and not hopeless and not self.ranges_counted:
            # Counting is slow: count only if the upper bound leaves no room, and once after each change.
            self.ranges, self.ranges_counted = self.tracker.count_finished_ranges(), True
        return max(0, MAX_RANGES - self.ranges - open_records)

    def park(self, lane: Lane) -> None:
        """Let this lane wait for room in the offset map. A lane whose first record is the commit point never waits."""
        if not self.parked:
            self.parked_at = self.tracker.commit_point
        self.parked.append(lane)

    def unpark(self) -> list[Lane]:
        """Return the parked lanes if there may be room now, else none."""
        if not self.parked or (self.tracker.commit_point == self.parked_at and not self._range_room(1)):
            return []
        lanes, self.parked = self.parked, []
        return lanes
