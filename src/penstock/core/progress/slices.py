"""Slices: the part of each partition that a Spark task handles next.

The driver keeps one ``PartitionSlices`` for each partition that it owns. ``plan`` picks the partitions whose next slice
may start now. A partition has at most one slice at a time, so its records stay in order, and no partition waits for
another one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import NamedTuple

from penstock.core.progress.offset_map import Range, joined
from penstock.core.records.record import TopicPartition

# If there are more partitions than tasks can run at once, each slice is shorter, so that each partition gets its turn.
# A slice is never planned shorter than this, because starting one costs tens of milliseconds.
_LEAST_SECONDS = 1.0

# Slices of at most this many offsets may share a task.
_SMALL = 2_000


class Wait(NamedTuple):
    """What the next slice must know of a record that waits. Times are in seconds since 1970.

    ``suspected_at`` is when a pausing breaker withheld its dead letter, which may take longer than a slice.
    """

    failures: int
    due: float
    suspected_at: float | None = None


@dataclass(frozen=True, slots=True)
class Slice:
    """The offsets from ``start`` up to, and without, ``end`` of one partition.

    ``start`` is the commit point, and ``metadata`` has the offset map of what is finished above it. ``waiting`` has
    records that failed before and wait for their next attempt. After ``seconds``, the task starts no further record.
    ``share`` of ``shares``: with ``scale="cpu"``, the part of the keys that the task handles.
    """

    tp: TopicPartition
    start: int
    end: int
    metadata: str = ""
    epoch: int = 0
    seconds: float = inf
    waiting: Mapping[int, Wait] = field(default_factory=dict)
    share: int = 0
    shares: int = 1

    def split(self, shares: int) -> list["Slice"]:
        """The same slice for so many tasks, each of which handles its share of the keys."""
        return [replace(self, share=number, shares=shares) for number in range(shares)]


@dataclass(frozen=True, slots=True)
class Reached:
    """How far a slice got: the commit point with its offset map, and the offset up to which the log was read.

    ``again_at``: the partition has nothing to do before this time, in seconds since 1970.
    """

    position: int
    metadata: str
    read_to: int
    waiting: Mapping[int, Wait] = field(default_factory=dict)
    again_at: float = 0.0


@dataclass(eq=False, slots=True)
class PartitionSlices:
    """The progress of one partition, for as long as this driver owns it. Only the driver's thread changes it."""

    tp: TopicPartition
    epoch: int
    position: int
    metadata: str = ""
    end: int = 0  # of the log, when the driver last asked; at most ``stop``
    read_to: int = 0  # a finished slice has read up to here; above ``position`` if records wait for a retry
    waiting: Mapping[int, Wait] = field(default_factory=dict)
    again_at: float = 0.0
    running: bool = False
    ended_at: float = 0.0  # when its last slice ended; the partition that waits longest gets the next turn
    stop: int | None = None  # a replay of a range reads no record at or above this offset

    def __post_init__(self) -> None:
        self.read_to = max(self.read_to, self.position)
        self.log_ends_at(self.end)

    def log_ends_at(self, end: int) -> None:
        self.end = end if self.stop is None else min(end, self.stop)

    def wants_slice(self, now: float) -> bool:
        if self.running or now < self.again_at:
            return False
        return self.end > self.read_to or any(each.due <= now for each in self.waiting.values())

    @property
    def backlog(self) -> int:
        """How many offsets of the log no slice has read."""
        return max(0, self.end - self.read_to)

    def next_due(self) -> float | None:
        """When a record that waits is due; None if no record waits, or a slice runs."""
        if self.running:
            return None
        due = [each.due for each in self.waiting.values()] + ([self.again_at] if self.end > self.read_to else [])
        return min(due, default=None)

    def begin(self, *, most: int, seconds: float) -> Slice:
        self.running = True
        end = min(self.end, self.read_to + most)
        return Slice(
            self.tp, self.position, max(end, self.read_to), self.metadata, self.epoch, seconds, dict(self.waiting)
        )

    def finish(self, reached: Reached, now: float) -> None:
        self.running = False
        self.ended_at = now
        self.position, self.metadata = reached.position, reached.metadata
        self.read_to = max(reached.read_to, reached.position)
        self.waiting, self.again_at = reached.waiting, reached.again_at

    def fail(self, now: float, *, again_at: float) -> None:
        """The slice ended without a result: all of it starts again, not before ``again_at``."""
        self.running = False
        self.ended_at = now
        self.again_at = again_at


def plan(
    partitions: Iterable[PartitionSlices],
    now: float,
    *,
    free: int,
    slots: int,
    most: int,
    seconds: float,
    may_share: bool,
) -> list[list[Slice]]:
    """Begin the slices that start now: a list for each of at most ``free`` tasks.

    ``slots`` is how many tasks run at once. With ``may_share``, small slices of several partitions share a task when
    there are more of them than free tasks.
    """
    partitions = list(partitions)
    ready = sorted((each for each in partitions if each.wants_slice(now)), key=lambda each: each.ended_at)
    if not ready or free < 1:
        return []
    busy = len(ready) + sum(each.running for each in partitions)
    seconds = max(min(seconds, _LEAST_SECONDS), seconds * slots / max(slots, busy))
    if len(ready) <= free or not may_share:
        return [[each.begin(most=most, seconds=seconds)] for each in ready[:free]]
    small = [each for each in ready if each.backlog <= _SMALL]
    large = [each for each in ready if each.backlog > _SMALL]
    # Half of the free tasks for either kind, and more where the other kind does not need them.
    for_small = min(len(small), max(1, free - len(large), free // 2)) if small else 0
    bundles = [[each.begin(most=most, seconds=seconds)] for each in large[: free - for_small]]
    if for_small:
        shared = min(seconds, _LEAST_SECONDS)
        bundles += [
            [each.begin(most=most, seconds=shared) for each in small[first::for_small]] for first in range(for_small)
        ]
    return bundles


def common(parts: Sequence[tuple[int, Sequence[Range], int]]) -> tuple[int, list[Range], int]:
    """Combine the progress of tasks that have read the same slice and handled different keys of it.

    Each part is a commit point, the finished ranges above it, and the offset up to which the task has read. To a task,
    the records of the others count as finished. So an offset is finished if every part says so.
    """
    high = max(read_to for _, _, read_to in parts)
    unfinished = joined(*(_gaps(point, finished, high) for point, finished, _ in parts))
    if not unfinished:
        return high, [], high
    point = unfinished[0][0]
    ends = [start for start, _ in unfinished[1:]] + [high]
    ranges = [(end, nxt) for (_, end), nxt in zip(unfinished, ends, strict=True) if nxt > end]
    return point, ranges, min(read_to for _, _, read_to in parts)


def _gaps(point: int, finished: Sequence[Range], high: int) -> list[Range]:
    """The offsets from the commit point up to ``high`` that are not finished."""
    gaps, at = [], point
    for start, end in finished:
        if start > at:
            gaps.append((at, start))
        at = max(at, end)
    return [*gaps, (at, high)] if at < high else gaps
