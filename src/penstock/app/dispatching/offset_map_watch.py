"""Reports a partition whose offset map is full: its records far ahead of the commit point wait. Both engines use it."""

from collections.abc import Iterable

from penstock.app.dispatching.reporter import Reporter
from penstock.core.scheduling.lanes import Epoch


class OffsetMapWatch:
    """The thread that hands out records owns it."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._full: set[Epoch] = set()

    def look(self, epochs: Iterable[Epoch]) -> None:
        """Report each partition once while lanes of it wait for room in its map. Call it a few times a second."""
        full = {epoch for epoch in epochs if epoch.lanes.parked}
        for epoch in full - self._full:
            point = epoch.tracker.commit_point
            self._reporter.offset_map_full(epoch, 0 if point is None else point, len(epoch.lanes.parked))
        self._full = full
