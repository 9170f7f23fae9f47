"""Detects records that have been in progress for a long time, and remembers when a record was finished last."""

from collections.abc import Callable, Collection

from penstock.app.attempts.work import Work
from penstock.core.scheduling.lanes import AnyRecord, Epoch
from penstock.engine.observe.health import InProgress

# A record that is in progress for this long is reported once.
_STALLED_SECONDS = 60.0
_LONGEST_SHOWN = 5


class StallDetector:
    """The dispatcher calls ``look`` every 0.1 s; other threads read ``finished_at`` and ``longest``."""

    def __init__(self, offset_of: Callable[[AnyRecord], int], now: float) -> None:
        self._offset_of = offset_of
        self._settled = 0
        self.finished_at = now
        self.longest: tuple[InProgress, ...] = ()

    def look(self, works: Collection[Work], settled: int, now: float) -> list[tuple[Epoch, AnyRecord, float]]:
        """Return the records that have stalled since the last call, and for how long each is in progress."""
        if settled != self._settled or not works:
            self._settled, self.finished_at = settled, now
        in_progress = [(work, current) for work in works if (current := work.current(now)) is not None]
        in_progress.sort(key=lambda each: -each[1][2])
        self.longest = tuple(
            InProgress(*run.epoch.tp, self._offset_of(record), round(seconds, 3))
            for _, (run, record, seconds) in in_progress[:_LONGEST_SHOWN]
        )
        stalled = []
        for work, (run, record, seconds) in in_progress:
            if seconds < _STALLED_SECONDS:
                break
            if not work.stalled:
                work.stalled = True
                stalled.append((run.epoch, record, seconds))
        return stalled
