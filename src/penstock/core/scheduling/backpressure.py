"""Which partitions to pause: those with too much, those that a command paused, retry topics before a record is due."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from penstock.core.scheduling.effects import Pause
from penstock.core.scheduling.in_flight import InFlight, InFlightCount
from penstock.core.scheduling.lanes import AnyRecord, Epoch

# How long ``max_in_flight`` must be used up before partitions above their share are paused and rewound. A pause makes
# the client fetch again what it had buffered, so a short moment of fullness is ignored.
FULL_SECONDS = 0.5

# The shortest pause of a retry topic. Records often fall due one after the other, and a pause and a fetch for each
# record would cost more than they gain.
NAP_SECONDS = 0.25


@dataclass(slots=True)
class Balanced:
    """Partitions to pause and to resume; and how many records, with how much excess, are no longer in flight."""

    pause: list[Pause] = field(default_factory=list)
    resume: list[Epoch] = field(default_factory=list)
    dropped: int = 0
    dropped_excess: int = 0


class Backpressure:
    """Shares ``max_in_flight`` and ``max_in_flight_bytes`` among the partitions of a member."""

    def __init__(self, bounds: InFlight, offset_of: Callable[[AnyRecord], int]) -> None:
        self._bounds = bounds
        self._offset_of = offset_of
        self._full_since: float | None = None
        self._is_acting = False  # a partition is paused, or about to be

    def sleep(self, epoch: Epoch, offset: int, *, now: float, wait: float) -> None:
        """Pause a retry topic's partition until the record at this offset is due.

        The partition is rewound to this offset: it and later records are fetched again then. Until then they are not
        in flight, and those that still arrive are dropped.
        """
        epoch.tracker.reach(offset)
        epoch.fetch_state.rewinding = True
        epoch.fetch_state.rewind_to = offset
        epoch.fetch_state.wake_at = now + max(wait, NAP_SECONDS)
        self._is_acting = True

    @staticmethod
    def rewound(epoch: Epoch) -> None:
        """The fetcher has seeked back, so the records that arrive from now on count."""
        epoch.fetch_state.rewinding = False

    def has_to_act(self, in_flight: InFlightCount) -> bool:
        """Whether a partition is paused, or may have to be. Rarely so, and quickly seen: this runs in each turn."""
        return self._is_acting or self._full_since is not None or in_flight.are_half_used

    def turn(self, epochs: Collection[Epoch], now: float) -> Balanced:
        """Decide which partitions to pause and which to resume.

        Shares matter only while the member's limit is used up. Then each partition above its share is paused, its
        records that no worker has begun are dropped, and it is rewound to the first of them.
        """
        balanced = Balanced()
        share = max(1, self._bounds.max_records // max(1, len(epochs)))
        share_bytes = self._bounds.max_bytes // max(1, len(epochs))
        if self._is_full(epochs, now):
            for epoch in epochs:
                state = epoch.fetch_state
                surplus, surplus_bytes = epoch.tracker.unfinished - share, self._bytes(epoch) - share_bytes
                # A single partition may use all bytes: no other partition needs them.
                if not state.paused and (surplus > 0 or (surplus_bytes > 0 and len(epochs) > 1)):
                    state.paused = True
                    if epoch.gate is None:  # at most once, waiting records are committed: Kafka does not redeliver them
                        self._drop_waiting(epoch, surplus, surplus_bytes, balanced)
                    balanced.pause.append(Pause(epoch, state.rewind_to))
                    state.rewind_to = None
        for epoch in epochs:
            state = epoch.fetch_state
            if state.rewind_to is not None:
                balanced.pause.append(Pause(epoch, state.rewind_to))
                state.rewind_to = None
            elif epoch.is_paused and not state.held:
                state.held = True
                balanced.pause.append(Pause(epoch, None))
            elif not epoch.is_ending and self._resumes(epoch, share, share_bytes, now):
                balanced.resume.append(epoch)
        self._is_acting = any(epoch.fetch_state.is_active for epoch in epochs)
        return balanced

    def _bytes(self, epoch: Epoch) -> int:
        return self._bounds.bytes_of(epoch.tracker.unfinished, epoch.large_values.excess)

    def _resumes(self, epoch: Epoch, share: int, share_bytes: int, now: float) -> bool:
        state = epoch.fetch_state
        was_paused = state.paused or state.held or state.wake_at is not None
        state.held = epoch.is_paused
        if state.paused and epoch.tracker.unfinished <= share // 2 and self._bytes(epoch) <= share_bytes // 2:
            state.paused = False
        if state.wake_at is not None and now >= state.wake_at:
            state.wake_at = None
        return was_paused and not (state.paused or state.held or state.wake_at is not None)

    def _is_full(self, epochs: Iterable[Epoch], now: float) -> bool:
        """Whether 3/4 of the records or of the bytes have been in flight for FULL_SECONDS."""
        records = sum(epoch.tracker.unfinished for epoch in epochs)
        used = self._bounds.bytes_of(records, sum(epoch.large_values.excess for epoch in epochs))
        if records < self._bounds.max_records * 3 // 4 and used < self._bounds.max_bytes * 3 // 4:
            self._full_since = None
        elif self._full_since is None:
            self._full_since = now
        return self._full_since is not None and now - self._full_since >= FULL_SECONDS

    def _drop_waiting(self, epoch: Epoch, surplus: int, surplus_bytes: int, balanced: Balanced) -> None:
        """Remove the last waiting records from the lanes, up to this surplus, and rewind the partition to the first.

        It removes only offsets above every record that is finished, with a worker or being produced: all records that
        are fetched again must be new to the tracker.
        """
        touched = epoch.tracker.highest_finished() if epoch.drained else epoch.map_room.highest_taken
        touched = max(touched, epoch.restored_up_to)
        offset_of, large = self._offset_of, epoch.large_values
        waiting = (offset_of(record) for lane in epoch.lanes.by_key.values() for record in lane.waiting)
        untouched = sorted(offset for offset in waiting if offset > touched)
        if not untouched:
            return
        count = 0
        while count < len(untouched) and (surplus > 0 or surplus_bytes > 0):
            count += 1
            surplus -= 1
            surplus_bytes -= self._bounds.bytes_of(1, large.excesses.get(untouched[-count], 0))
        first = untouched[-count]
        balanced.dropped_excess += large.remove([offset for offset in large.excesses if offset >= first])
        balanced.dropped += epoch.lanes.drop_from(first, offset_of)
        epoch.tracker.retract(first)
        epoch.fetch_state.rewinding = True
        epoch.fetch_state.rewind_to = first
        epoch.fetch_state.wake_at = None
