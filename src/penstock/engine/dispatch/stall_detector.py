"""What workers have been at for a long time, and when something was finished last."""

from collections.abc import Callable, Collection

from penstock.core.scheduling.lanes import AnyRecord, Epoch
from penstock.core.scheduling.work import Work
from penstock.engine.observe.health import InProgress

# A record that takes this long is reported, once.
_STALLED_SECONDS = 60.0
_LONGEST_SHOWN = 5


class StallDetector:
    """The dispatcher looks now and then; ``finished_at`` and ``longest`` are read from other threads."""

    def __init__(self, offset_of: Callable[[AnyRecord], int], now: float) -> None:
        self._offset_of = offset_of
        self._settled = 0
        self.finished_at = now
        self.longest: tuple[InProgress, ...] = ()

    def look(self, works: Collection[Work], settled: int, now: float) -> list[tuple[Epoch, AnyRecord, float]]:
        """Returns the records that have stalled since the last look, and for how long each is in progress."""
        if settled != self._settled or not works:
            self._settled, self.finished_at = settled, now
        at = [(work, current) for work in works if (current := work.current(now)) is not None]
        at.sort(key=lambda each: -each[1][2])
        self.longest = tuple(
            InProgress(*run.epoch.tp, self._offset_of(record), round(seconds, 3))
            for _, (run, record, seconds) in at[:_LONGEST_SHOWN]
        )
        stalled = []
        for work, (run, record, seconds) in at:
            if seconds < _STALLED_SECONDS:
                break
            if not work.stalled:
                work.stalled = True
                stalled.append((run.epoch, record, seconds))
        return stalled
