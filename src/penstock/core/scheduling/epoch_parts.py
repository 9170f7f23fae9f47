"""The parts of an ``Epoch``. Each class has one owner, named in its docstring: only the owner writes its fields."""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.core.progress.offset_map import MAX_BODY_BYTES
from penstock.core.progress.tracker import Tracker

# If all finished offsets are this close to the commit point, they always fit into the commit's metadata as a bitmap.
BITMAP_SPAN = 8 * MAX_BODY_BYTES
# This many finished ranges always fit as ranges, even if four billion offsets lie between the first and the last.
MAX_RANGES = 380


@dataclass(eq=False, slots=True)
class FetchState:
    """What the fetcher was asked to do with the partition. Owner: ``Backpressure``."""

    paused: bool = False  # because the partition holds more than its share
    held: bool = False  # because a command has paused the partition
    wake_at: float | None = None  # in a retry topic: when the first record that was not due falls due
    rewind_to: int | None = None  # the offset to seek back to, until the fetcher is asked to
    rewinding: bool = False  # until the fetcher has seeked back, the dispatcher drops the records that arrive

    @property
    def is_active(self) -> bool:
        """Whether the partition is paused, or is about to be."""
        return self.paused or self.held or self.wake_at is not None or self.rewind_to is not None


@dataclass(eq=False, slots=True)
class Pending:
    """Records that are handled, but not finished. Owner: ``OutcomeRules``."""

    sending: int = 0  # records whose outputs, dead letter or retry record the broker has not acknowledged yet
    unacked: dict[int, Any] = field(default_factory=dict)  # handled; the user has not acknowledged them. By offset
    acked_early: dict[int, Any] = field(default_factory=dict)  # acknowledged before their outcome arrived. By offset

    @property
    def count(self) -> int:
        return self.sending + len(self.unacked)


@dataclass(eq=False, slots=True)
class LargeValues:
    """The excess (see ``InFlight``) of each large value in flight.

    Owner: ``Dispatch``; ``OutcomeRules`` removes finished records, ``Backpressure`` those that it drops.
    """

    excesses: dict[int, int] = field(default_factory=dict)  # by offset, in bytes
    excess: int = 0  # the sum of them

    def add(self, excesses: Mapping[int, int]) -> int:
        """Add the excesses of large values; returns their sum."""
        self.excesses.update(excesses)
        more = sum(excesses.values())
        self.excess += more
        return more

    def remove(self, offsets: Iterable[int]) -> int:
        """Remove the excesses of these offsets, which are no longer in flight; returns their sum."""
        removed = sum(self.excesses.pop(offset, 0) for offset in offsets)
        self.excess -= removed
        return removed


@dataclass(eq=False, slots=True)
class MapRoom:
    """Whether the offset map will fit into a commit's metadata, whatever finishes next.

    A map fits in one of two ways: all started offsets are close enough to the commit point for a bitmap; or there are
    few enough finished ranges, where each started record can add one.

    Owner: ``Schedule``, which raises ``highest_taken`` and calls ``fitting``; ``OutcomeRules`` calls ``add_finished``.
    """

    highest_taken: int = -1  # the highest offset that a worker ever had, or that an earlier epoch finished
    bitmap_end: int = 0  # a bitmap holds all offsets below this one
    ranges: int = 0  # an upper bound for the number of finished ranges above the commit point
    is_exact: bool = False  # ``ranges`` is exact, because no record was finished since the count

    def add_finished(self, count: int) -> None:
        """So many more records are finished, each of which may be a range of its own."""
        self.ranges += count
        self.is_exact = False

    def fitting(
        self,
        waiting: deque[Any],
        wanted: int,
        tracker: Tracker,
        *,
        started: int,
        offset_of: Callable[[Any], int],
    ) -> int:
        """How many of the first ``wanted`` waiting records may start, so that every later map fits.

        ``started`` is how many records of the epoch are started and not finished.
        """
        last = offset_of(waiting[wanted - 1])
        if max(last, self.highest_taken) < self.bitmap_end:
            return wanted
        # The commit point may have moved since ``bitmap_end`` was computed; it never goes back.
        point = tracker.commit_point
        if point is None:
            return wanted
        self.bitmap_end = point + BITMAP_SPAN
        if self.highest_taken < self.bitmap_end:
            # Records that a worker returned are below ``highest_taken``; the offsets behind them ascend.
            near = bisect_left(waiting, self.bitmap_end, hi=wanted, key=offset_of)
            if near:
                return near
        return min(wanted, self.free_ranges(wanted, tracker, started=started))

    def free_ranges(self, wanted: int, tracker: Tracker, *, started: int) -> int:
        """How many more ranges the map can hold; exact only if ``wanted`` may not fit."""
        hopeless = started >= MAX_RANGES
        if self.ranges + started + wanted > MAX_RANGES and not hopeless and not self.is_exact:
            # Counting is slow: count only if the upper bound leaves no room, and once after each change.
            self.ranges, self.is_exact = tracker.count_finished_ranges(), True
        return max(0, MAX_RANGES - self.ranges - started)
