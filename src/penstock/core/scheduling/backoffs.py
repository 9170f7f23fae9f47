"""The lanes that wait for a retry in memory, and when each is due."""

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count

from penstock.core.scheduling.lanes import Lane


class Backoffs:
    """A heap of lanes. ``Schedule`` owns it."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Lane]] = []
        self._numbers = count()  # so that lanes are never compared

    def __bool__(self) -> bool:
        return bool(self._heap)

    def __iter__(self) -> Iterator[tuple[float, Lane]]:
        return ((at, lane) for at, _, lane in self._heap)

    def add(self, lane: Lane, at: float) -> None:
        """Hold this lane until then."""
        lane.held = True
        heappush(self._heap, (at, next(self._numbers), lane))

    def end(self, now: float) -> Iterator[Lane]:
        """Remove the lanes that are due, and hold them no longer."""
        heap = self._heap
        while heap and heap[0][0] <= now:
            lane = heappop(heap)[2]
            lane.held = False
            yield lane

    def next_due(self) -> list[float]:
        """When the next lane is due, if one waits."""
        return [self._heap[0][0]] if self._heap else []

    def forget_ended(self) -> None:
        """Forget the lanes of epochs that have ended: a record may wait for days, and its partition move often."""
        self._heap = sorted(each for each in self._heap if each[2].epoch.dispatching)  # a sorted list is a heap
