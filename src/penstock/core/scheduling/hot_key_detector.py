"""Detects a hot key: most waiting records have this key, while some worker is idle."""

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.core.scheduling.lanes import Epoch, Lane

_CHECK_SECONDS = 1.0
# A key is hot after it held more than half of the waiting records for this long, and at least this many of them.
_HOT_SECONDS = 10.0
_MIN_WAITING = 100


@dataclass(frozen=True, slots=True)
class BlockingKey:
    """This lane holds ``waiting`` of all ``of`` waiting records, and has done so for ``seconds``."""

    lane: Lane
    waiting: int
    of: int
    seconds: float


class HotKeyDetector:
    """Reports a hot key once, and again only if it was not hot in between.

    At most one lane can hold more than half of the waiting records, so it remembers only one.
    """

    def __init__(self) -> None:
        self._next_check = 0.0
        self._lane: Lane | None = None
        self._since = 0.0
        self._is_reported = False

    def look(self, epochs: Iterable[Epoch], *, has_idle: bool, now: float) -> BlockingKey | None:
        """Check once a second. ``has_idle`` says whether some worker has nothing to do."""
        if now < self._next_check:
            return None
        self._next_check = now + _CHECK_SECONDS
        lane, of = _longest(epochs) if has_idle else (None, 0)
        if lane is None or len(lane.waiting) < _MIN_WAITING or 2 * len(lane.waiting) <= of:
            self._lane = None
            return None
        if lane is not self._lane:
            self._lane, self._since, self._is_reported = lane, now, False
        if self._is_reported or now - self._since < _HOT_SECONDS:
            return None
        self._is_reported = True
        return BlockingKey(lane, len(lane.waiting), of, now - self._since)


def _longest(epochs: Iterable[Epoch]) -> tuple[Lane | None, int]:
    """The longest lane of a key, and how many records wait in all lanes."""
    longest, waiting = None, 0
    for epoch in epochs:
        if epoch.is_paused:
            continue
        for lane in epoch.lanes.by_key.values():
            waiting += len(lane.waiting)
            # A str names the mixed lane of a partition; keys are bytes.
            of_key = lane.ordered and not isinstance(lane.key, str)
            if of_key and (longest is None or len(lane.waiting) > len(longest.waiting)):
                longest = lane
    return longest, waiting
