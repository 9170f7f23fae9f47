"""The works that workers have, and the outcomes that the dispatcher has collected from them."""

from collections.abc import Callable, Iterable

from penstock.app import Handler
from penstock.app.work import Work
from penstock.core.scheduling.effects import Result
from penstock.core.scheduling.lanes import AnyRecord, Epoch
from penstock.engine.dispatch.overdue_detector import OverdueDetector, OverdueRecord
from penstock.engine.dispatch.stall_detector import StallDetector
from penstock.engine.observe.health import InProgress

# From a worker that has had a bundle for longer than this, the dispatcher takes back what it has not begun.
_STUCK_SECONDS = 0.05


class WorksInProgress:
    """The dispatcher's thread owns it; other threads read ``finished_at`` and ``longest``."""

    def __init__(self, handler: Handler, offset_of: Callable[[AnyRecord], int], clock: Callable[[], float]) -> None:
        self._clock = clock
        self._works: set[Work] = set()
        self._results: list[Result] = []
        self._stall_detector = StallDetector(offset_of, clock())
        self._overdue_detector = OverdueDetector(handler)

    def add(self, works: Iterable[Work]) -> None:
        """Workers get these works."""
        self._works.update(works)

    def remove(self, work: Work) -> None:
        """A worker has finished this work: collect its last outcomes."""
        self._works.discard(work)
        self._results.extend(work.collect())

    def collect(self) -> None:
        """Collect the outcomes that busy workers have so far."""
        for work in self._works:
            self._results.extend(work.collect())

    def collect_and_take_back(self) -> None:
        """The same; and take the runs that stuck workers have not begun, so that other workers can start them."""
        for work in self._works:
            self._results.extend(work.collect())
            if work.began is not None and self._clock() - work.began > _STUCK_SECONDS:
                self._results.extend((run, (), True) for run in work.take_back())

    def take_back(self) -> None:
        """Take from all workers the runs that they have not begun."""
        for work in self._works:
            self._results.extend(work.collect())
            self._results.extend((run, (), True) for run in work.take_back())

    def take_results(self) -> list[Result]:
        """Return what was collected since the last call."""
        results, self._results = self._results, []
        return results

    def stalled(self, settled: int) -> list[tuple[Epoch, AnyRecord, float]]:
        """Return the records that have stalled since the last call, and for how long each is in progress."""
        return self._stall_detector.look(self._works, settled, self._clock())

    def overdue(self) -> list[OverdueRecord]:
        """Return the attempts on threads that have passed the handler's ``timeout`` since the last call."""
        return self._overdue_detector.look(self._works, self._clock())

    def current(self, now: float) -> list[tuple[Epoch, AnyRecord, float]]:
        """The records that workers handle now, and for how long."""
        found = [current for work in self._works if (current := work.current(now)) is not None]
        return [(run.epoch, record, seconds) for run, record, seconds in found]

    @property
    def finished_at(self) -> float:
        """When a record was finished last."""
        return self._stall_detector.finished_at

    @property
    def longest(self) -> tuple[InProgress, ...]:
        """The records that have been in progress longest."""
        return self._stall_detector.longest
