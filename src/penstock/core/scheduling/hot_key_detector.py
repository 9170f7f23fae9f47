"""A key that holds up the rest: most of what waits is in its lane, while workers have nothing to do."""

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.core.scheduling.lanes import Epoch, Lane

_LOOK_SECONDS = 1.0
# It is told when it was so for so long, and never about a handful of records.
_SECONDS = 10.0
_MANY = 100


@dataclass(frozen=True, slots=True)
class BlockingKey:
    """``waiting`` of the ``of`` records that wait at all are in this lane."""

    lane: Lane
    waiting: int
    of: int
    seconds: float


class HotKeyDetector:
    """Only one lane can have more than half; it is told once, and again if it was not so meanwhile."""

    def __init__(self) -> None:
        self._next_look = 0.0
        self._lane: Lane | None = None
        self._since = 0.0
        self._told = False

    def look(self, epochs: Iterable[Epoch], *, has_idle: bool, now: float) -> BlockingKey | None:
        """``has_idle``: whether a worker has nothing to do."""
        if now < self._next_look:
            return None
        self._next_look = now + _LOOK_SECONDS
        lane, of = _longest(epochs) if has_idle else (None, 0)
        if lane is None or len(lane.waiting) < _MANY or 2 * len(lane.waiting) <= of:
            self._lane = None
            return None
        if lane is not self._lane:
            self._lane, self._since, self._told = lane, now, False
        if self._told or now - self._since < _SECONDS:
            return None
        self._told = True
        return BlockingKey(lane, len(lane.waiting), of, now - self._since)


def _longest(epochs: Iterable[Epoch]) -> tuple[Lane | None, int]:
    """The longest lane of a key, and how many records wait in all lanes."""
    longest, waiting = None, 0
    for epoch in epochs:
        for lane in epoch.lanes.values():
            waiting += len(lane.waiting)
            # Lanes of whole partitions, and of what has no order, go by names.
            if not isinstance(lane.key, str) and (longest is None or len(lane.waiting) > len(longest.waiting)):
                longest = lane
    return longest, waiting
