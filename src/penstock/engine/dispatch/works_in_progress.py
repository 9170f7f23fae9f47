"""The works that workers have, and the outcomes that the dispatcher has collected from them."""

from collections.abc import Callable, Iterable

from penstock.app import Handler
from penstock.app.attempts.work import Work
from penstock.app.dispatching.reporter import Reporter
from penstock.core.scheduling.dispatch import Dispatch
from penstock.core.scheduling.effects import Result
from penstock.core.scheduling.hot_key_detector import HotKeyDetector
from penstock.core.scheduling.lanes import AnyRecord, Epoch
from penstock.engine.dispatch.overdue_detector import OverdueDetector
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
        self._hot_keys = HotKeyDetector()

    @property
    def are_none(self) -> bool:
        """Whether no worker has a work."""
        return not self._works

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

    def report_slow(self, dispatch: Dispatch, reporter: Reporter, *, has_idle: bool) -> None:
        """Report records that have stalled or passed the handler's ``timeout`` since the last call, and a hot key.

        ``has_idle`` says whether some worker has nothing to do.
        """
        now = self._clock()
        for epoch, record, seconds in self._stall_detector.look(self._works, dispatch.settled, now):
            reporter.stalled(epoch, record, seconds)
        for late in self._overdue_detector.look(self._works, now):
            reporter.overdue(late.epoch, late.record, late.seconds, late.stack)
        hot = self._hot_keys.look(dispatch.epochs, has_idle=has_idle, now=now)
        if hot is not None:
            reporter.hot_key(hot)

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
