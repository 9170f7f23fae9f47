"""How many works run at once, in a member of the local engine or in a task of Spark.

With ``concurrency="auto"``, it follows the rule that finds the number.
"""

from collections.abc import Callable
from typing import Protocol

from penstock.app.attempts.work import Work
from penstock.app.dispatching.reporter import Reporter
from penstock.app.handler import Handler
from penstock.core.scheduling.auto_concurrency import AutoConcurrency
from penstock.core.scheduling.bundle_size import queued_ahead
from penstock.core.scheduling.dispatch import Dispatch

# A change is reported if the number is larger or smaller by this part than the one that was reported last.
_REPORTED_PART = 10
_LONGEST_BREATH_SECONDS = 0.001


class ResizableWorkers(Protocol):
    """What this module needs of workers."""

    def resize(self, concurrency: int) -> None: ...


def auto_concurrency(handler: Handler) -> AutoConcurrency | None:
    """The rule for this handler, if it has not named a number."""
    return AutoConcurrency(handler.largest_concurrency) if handler.concurrency == "auto" else None


class RunningConcurrency:
    """The thread that hands out records owns it; other threads read ``limit``."""

    def __init__(
        self,
        handler: Handler,
        dispatch: Dispatch,
        reporter: Reporter,
        auto: AutoConcurrency | None,
        clock: Callable[[], float],
    ) -> None:
        self._dispatch = dispatch
        self._reporter = reporter
        self._clock = clock
        self._in_batches = handler.batch is not None
        self.auto = auto
        """The rule, unless the handler or ``set`` has named a number."""
        self.limit = handler.largest_concurrency if self.auto is None else self.auto.limit
        self.busy = 0
        """How many works were out after the last were handed out. Several often end before the next are."""
        self._reported = self.limit
        self._tell_rules()

    def attach(self, workers: ResizableWorkers) -> None:
        self._workers = workers
        if self.auto is not None:
            workers.resize(self.limit)

    @property
    def is_enough_ahead(self) -> bool:
        """Whether so many works are queued that no worker waits for the dispatcher."""
        return self._dispatch.busy > self._enough

    def breath(self, bundle_seconds: float) -> float:
        """How long the thread that hands out can let outcomes gather, if a worker needs so long for a bundle.

        After half of this time, the first worker could find the queue empty.
        """
        if not self.is_enough_ahead:
            return 0.0
        queued = self._dispatch.busy - self.limit
        return min(_LONGEST_BREATH_SECONDS, bundle_seconds * queued / self.limit / 2)

    def set(self, limit: int) -> None:
        """Let so many works run at once from now on, and end the search for the best number."""
        self.auto = None
        self._apply(limit)

    def follow(self, handler: Handler) -> None:
        """Take over the concurrency of this handler, whose other options are unchanged."""
        if handler.concurrency != "auto":
            self.set(handler.concurrency)
        elif self.auto is None:
            self.auto = auto_concurrency(handler)
            self._apply(handler.largest_concurrency if self.auto is None else self.auto.limit)

    def worked(self, work: Work) -> None:
        """A worker has finished this work."""
        auto = self.auto
        if auto is None or not (calls := work.attempted):
            return
        failed = work.failed
        if self._in_batches:
            calls, failed = 1, min(1, failed)
        if auto.observe(calls, work.seconds / calls, failed, busy=self.busy, now=self._clock()):
            self._apply(auto.limit)

    def report(self) -> None:
        """Emit an event if the number has changed much since the last call."""
        before, now = self._reported, self.limit
        if now != before and abs(now - before) * _REPORTED_PART >= before and not (self.auto and self.auto.is_on_trial):
            self._reported = now
            self._reporter.concurrency_changed(now, before)

    def _apply(self, limit: int) -> None:
        self.limit = limit
        self._tell_rules()
        self._workers.resize(limit)

    def _tell_rules(self) -> None:
        ahead = queued_ahead(self.limit)
        self._enough = self.limit + ahead // 2
        self._dispatch.set_concurrency(self.limit, ahead)
