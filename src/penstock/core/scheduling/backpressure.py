"""Which partitions rest for a while: those that hold too much, and retry topics whose next record is not due."""

from collections import deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from penstock.core.scheduling.effects import Pause
from penstock.core.scheduling.in_flight import InFlight
from penstock.core.scheduling.lanes import AnyRecord, Epoch

# How long all places may be taken before partitions that hold more than their share must give some back. Pausing makes
# the client fetch again what it had buffered, so a moment of fullness is waited out.
FULL_SECONDS = 0.5

# The shortest rest of a retry topic. Records often fall due one after the other, and fetching anew for each would cost
# more than it gains.
NAP_SECONDS = 0.25


@dataclass(slots=True)
class Balanced:
    """What to pause and to resume, and how many records lost their places, with how many bytes of large values."""

    pause: list[Pause] = field(default_factory=list)
    resume: list[Epoch] = field(default_factory=list)
    given_back: int = 0
    freed: int = 0


class Backpressure:
    """The places of ``max_in_flight`` among partitions, and the bytes of ``max_in_flight_bytes``."""

    def __init__(self, bounds: InFlight, offset_of: Callable[[AnyRecord], int]) -> None:
        self._bounds = bounds
        self._offset_of = offset_of
        self._full_since: float | None = None

    def sleep(self, epoch: Epoch, offset: int, *, now: float, wait: float) -> None:
        """The record at this offset is not due, and neither is what follows; they are fetched again when it is.

        Until then they hold no places, and what still comes of them is dropped.
        """
        epoch.tracker.reach(offset)
        epoch.rewinding = True
        epoch.rewind_to = offset
        epoch.wake_at = now + max(wait, NAP_SECONDS)

    def turn(self, epochs: Collection[Epoch], now: float) -> Balanced:
        """What is to rest from now on, and what has rested enough.

        Places matter only where all are taken for a while. Then a partition with more than its share gives back what
        has not started, and fetching it goes on from there later.
        """
        balanced = Balanced()
        share = max(1, self._bounds.max_records // max(1, len(epochs)))
        share_bytes = self._bounds.max_bytes // max(1, len(epochs))
        if self._is_full(epochs, now):
            for epoch in epochs:
                surplus, surplus_bytes = epoch.tracker.unfinished - share, self._bytes(epoch) - share_bytes
                # A partition that is alone takes bytes from nobody.
                if not epoch.paused and (surplus > 0 or (surplus_bytes > 0 and len(epochs) > 1)):
                    epoch.paused = True
                    if epoch.gate is None:  # else what waits on lanes is committed, and would not come again
                        self._give_back(epoch, surplus, surplus_bytes, balanced)
                    balanced.pause.append(Pause(epoch, epoch.rewind_to))
                    epoch.rewind_to = None
        for epoch in epochs:
            if epoch.rewind_to is not None:
                balanced.pause.append(Pause(epoch, epoch.rewind_to))
                epoch.rewind_to = None
            elif self._wakes(epoch, share, share_bytes, now):
                balanced.resume.append(epoch)
        return balanced

    def _bytes(self, epoch: Epoch) -> int:
        return self._bounds.bytes_of(epoch.tracker.unfinished, epoch.excess)

    def _wakes(self, epoch: Epoch, share: int, share_bytes: int, now: float) -> bool:
        rested = epoch.paused or epoch.wake_at is not None
        if epoch.paused and epoch.tracker.unfinished <= share // 2 and self._bytes(epoch) <= share_bytes // 2:
            epoch.paused = False
        if epoch.wake_at is not None and now >= epoch.wake_at:
            epoch.wake_at = None
        return rested and not epoch.paused and epoch.wake_at is None

    def _is_full(self, epochs: Iterable[Epoch], now: float) -> bool:
        """Whether nearly all places, or bytes, have been taken for a while."""
        records = sum(epoch.tracker.unfinished for epoch in epochs)
        taken = self._bounds.bytes_of(records, sum(epoch.excess for epoch in epochs))
        if records < self._bounds.max_records * 3 // 4 and taken < self._bounds.max_bytes * 3 // 4:
            self._full_since = None
        elif self._full_since is None:
            self._full_since = now
        return self._full_since is not None and now - self._full_since >= FULL_SECONDS

    def _give_back(self, epoch: Epoch, surplus: int, surplus_bytes: int, balanced: Balanced) -> None:
        """Take up to so many records, and bytes, off the ends of lanes; fetching starts again at the first of them.

        Only those above everything that is finished, in progress or sent: what comes again must all be new.
        """
        touched = epoch.tracker.highest_finished() if epoch.drained else epoch.highest_taken
        touched = max(touched, epoch.restored_up_to)
        offset_of = self._offset_of
        waiting = (offset_of(record) for lane in epoch.lanes.values() for record in lane.waiting)
        untouched = sorted(offset for offset in waiting if offset > touched)
        if not untouched:
            return
        count = 0
        while count < len(untouched) and (surplus > 0 or surplus_bytes > 0):
            count += 1
            surplus -= 1
            surplus_bytes -= self._bounds.bytes_of(1, epoch.excesses.get(untouched[-count], 0))
        first = untouched[-count]
        balanced.freed += epoch.lighten([offset for offset in epoch.excesses if offset >= first])
        for lane in [*epoch.lanes.values()]:
            # Looked at one by one: what was put back into a lane without an order may stand anywhere in it.
            kept = [record for record in lane.waiting if offset_of(record) < first]
            balanced.given_back += len(lane.waiting) - len(kept)
            lane.waiting = deque(kept)
            if not lane.waiting and not lane.held:
                del epoch.lanes[lane.key]
        epoch.tracker.retract(first)
        epoch.rewinding = True
        epoch.rewind_to = first
        epoch.wake_at = None
