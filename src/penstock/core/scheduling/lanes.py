"""Lanes (records that must run in order), runs (what a worker takes from a lane) and epochs (which own the lanes)."""

from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any, Literal

from penstock.core.failures.outcome import Outcome
from penstock.core.progress.commit_gate import CommitGate
from penstock.core.progress.offset_map import encode
from penstock.core.progress.tracker import Tracker
from penstock.core.records.record import TopicPartition
from penstock.core.scheduling.epoch_parts import BITMAP_SPAN, FetchState, LargeValues, MapRoom, Pending

Order = Literal["partition", "key", "none"]

# Each engine passes its own kind of record (a client's message, a row). The rules read only its offset and its key.
AnyRecord = Any

_NUMBERS = count()  # so that a heap never compares lanes


@dataclass(eq=False, slots=True)
class Lane:
    """Records that must run one at a time, in the order of their offsets; if not ``ordered``, in any order.

    Owner: ``Schedule``; ``Backpressure`` drops waiting records through ``PartitionLanes.drop_from``.
    """

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
class LaneRun:
    """The first records of a lane, in the order in which a worker attempts them.

    The worker appends an outcome for each record that it attempts, and sets ``done`` when it attempts no more of them.
    The dispatcher collects outcomes meanwhile; ``collected`` counts those that it has.
    """

    lane: Lane
    records: list[AnyRecord]
    outcomes: list[Outcome] = field(default_factory=list)
    done: bool = False
    collected: int = 0
    split_from: "LaneRun | None" = None  # a worker may still be busy with the last record of that run

    @property
    def epoch(self) -> "Epoch":
        return self.lane.epoch

    def split(self, tail: list[AnyRecord]) -> "LaneRun":
        """Move these last records, which no worker has begun, to a run of their own."""
        del self.records[len(self.records) - len(tail) :]
        self.epoch.lanes.running += 1
        return LaneRun(self.lane, tail, split_from=self)


@dataclass(eq=False, slots=True)
class PartitionLanes:
    """The lanes of one partition, and what workers have of them.

    Owner: ``Schedule``. Two others change it, by methods: ``Backpressure`` (``drop_from``), and the dispatcher when it
    takes records back from a stuck worker (``LaneRun.split``).
    """

    by_key: dict[Hashable, Lane] = field(default_factory=dict)  # lanes with records that wait or run
    mixed: bool = False  # all keys share one mixed lane
    mixed_again_from: int = 0  # the keys keep their own lanes up to this offset
    running: int = 0  # runs that workers have
    in_progress: int = 0  # records in those runs
    # Lanes that wait for room in the offset map: a heap by the offset of their first record.
    parked: list[tuple[int, int, Lane]] = field(default_factory=list)
    parked_at: int | None = None  # the commit point when the first lane was parked, or some were unparked
    paused: list[Lane] = field(default_factory=list)  # lanes with records, of a partition that a command has paused

    def drop_from(self, first: int, offset_of: Callable[[AnyRecord], int]) -> int:
        """Remove the waiting records from this offset on; returns how many. They will be fetched again."""
        dropped = 0
        for lane in [*self.by_key.values()]:
            # Each record is compared, because a record that was put back into a lane without order can be anywhere.
            kept = [record for record in lane.waiting if offset_of(record) < first]
            dropped += len(lane.waiting) - len(kept)
            lane.waiting = deque(kept)
            if not lane.waiting and not lane.held:
                del self.by_key[lane.key]
        return dropped

    def unpark(self, lane: Lane) -> bool:
        """Take this lane out of those that wait for room; returns whether it was one of them."""
        kept = [each for each in self.parked if each[2] is not lane]
        was_parked = len(kept) < len(self.parked)
        self.parked = kept
        heapify(kept)
        return was_parked

    def clear(self) -> None:
        for lane in self.by_key.values():
            lane.waiting.clear()
        self.by_key.clear()
        self.parked.clear()
        self.paused.clear()


@dataclass(eq=False, slots=True)
class Epoch:
    """One ownership of one partition, from assigned to revoked or lost.

    Each mutable part is an object of its own, whose class names its owner: the only one that writes its fields.
    The few fields that are left here are:

    - ``tracker``: ``Dispatch`` delivers offsets, ``OutcomeRules`` finishes them; ``Backpressure`` takes back the
      delivery of those that it drops.
    - ``committed``: written by ``Dispatch``.
    - ``failures``: written by ``OutcomeRules``, and by ``Dispatch`` for records of a retry topic (on Spark, by the
      task's settlement); read by workers for each record.
    - ``suspected_at``: written by ``OutcomeRules``; when a pausing breaker withheld the dead letter of a record.
    - ``is_paused``: written by ``CommandedPause``; whether a command has paused the partition.
    - ``dispatching``: written by ``end`` and read by workers before each record. Once it is False, they start no
      further one.
    """

    tp: TopicPartition
    number: int
    tracker: Tracker
    committed: tuple[int, str] | None  # the offset and metadata that the broker has; None: commit in any case
    gate: CommitGate | None = None  # at most once: records wait here until they are committed
    restored_up_to: int = -1  # the highest offset that an earlier epoch finished
    failures: dict[int, int] = field(default_factory=dict)  # failed attempts of each unfinished record, by offset
    suspected_at: dict[int, float] = field(default_factory=dict)
    is_paused: bool = False
    dispatching: bool = True
    lanes: PartitionLanes = field(default_factory=PartitionLanes)
    map_room: MapRoom = field(default_factory=MapRoom)
    pending: Pending = field(default_factory=Pending)
    fetch_state: FetchState = field(default_factory=FetchState)
    large_values: LargeValues = field(default_factory=LargeValues)

    @property
    def drained(self) -> bool:
        """Whether no record is with a worker, being produced, or waiting for its acknowledgement."""
        # At most once, records in lanes are committed already: if this epoch drops them, they are lost.
        committed = self.gate is not None and (self.gate or self.lanes.by_key)
        return not self.lanes.running and not self.pending.count and not committed

    @property
    def is_open(self) -> bool:
        """Whether it accepts fetched records. If not, they are dropped and will be fetched again."""
        return not self.fetch_state.rewinding and not self.is_ending

    @property
    def is_ending(self) -> bool:
        """Whether the member gives it up: it starts no further record, except those that are committed already."""
        return not self.dispatching or (self.gate is not None and self.gate.is_shut)

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
        self.lanes.clear()

    def to_commit(self) -> tuple[int, str] | None:
        """The commit point and its offset map, one snapshot; None if the commit point is not known yet."""
        if self.gate is not None:
            ahead = None if self.gate.is_shut or self.is_paused else self.tracker.ahead()
            return self.committed if ahead is None else (ahead[0], encode(*ahead) or "")
        point = self.tracker.commit_point
        if point is None:
            return None
        # Without a map no record is lost: those that are finished above the commit point would be handled again.
        return point, encode(point, self.tracker.finished_ranges()) or ""

    def has_reached(self, end: int) -> bool:
        """Whether it is finished up to this offset. Records of a retry topic that are not due yet do not count."""
        if self.fetch_state.wake_at is not None:
            return not self.tracker.unfinished
        return (point := self.tracker.commit_point) is not None and point >= end

    def attempt_at(self, offset: int) -> int:
        """The number of the next or current attempt at this record."""
        return self.failures.get(offset, 0) + 1

    @property
    def started(self) -> int:
        """How many records are started and not finished: each can add a range to the offset map."""
        return self.lanes.in_progress + self.pending.count

    def fitting(self, lane: Lane, wanted: int, offset_of: Callable[[AnyRecord], int]) -> int:
        """How many of the first ``wanted`` records of this lane may start, so that every later offset map fits."""
        return self.map_room.fitting(lane.waiting, wanted, self.tracker, started=self.started, offset_of=offset_of)

    def park(self, lane: Lane, first: int) -> None:
        """Let this lane wait for room in the offset map. A lane whose first record is the commit point never waits.

        ``first`` is the offset of its first record.
        """
        if not self.lanes.parked:
            self.lanes.parked_at = self.tracker.commit_point
        heappush(self.lanes.parked, (first, next(_NUMBERS), lane))

    def unpark(self) -> list[Lane]:
        """Return the parked lanes that there may be room for now, lowest offsets first: they make the map smaller.

        There can be thousands, and trying them all after each record would take longer than the records.
        """
        lanes, map_room = self.lanes, self.map_room
        if not lanes.parked:
            return []
        point = self.tracker.commit_point
        free = map_room.free_ranges(1, self.tracker, started=self.started)
        if point == lanes.parked_at and not free:
            return []
        lanes.parked_at = point
        if not self.started or point is None:
            # Nothing would call this again.
            parked, lanes.parked = lanes.parked, []
            return [lane for _, _, lane in sorted(parked)]
        # Below this offset, a lane has room in a bitmap.
        near = point + BITMAP_SPAN if map_room.highest_taken < point + BITMAP_SPAN else point
        found: list[Lane] = []
        while lanes.parked and (len(found) < max(1, free) or lanes.parked[0][0] < near):
            lane = heappop(lanes.parked)[2]
            if lane.waiting:  # if not, its records were dropped
                found.append(lane)
        return found


def name_alone(offset: int) -> Hashable:
    """The name of a lane that holds one record without order."""
    return ("alone", offset)
