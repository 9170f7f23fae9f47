"""How a member stops: it starts no further records, and leaves the group when everything is finished and committed."""

from collections.abc import Callable, Iterable
from math import inf

from penstock.app.dispatching.reporter import Reporter
from penstock.core.records.record import TopicPartition
from penstock.core.scheduling.dispatch import Dispatch
from penstock.engine.dispatch.commit_scheduler import CommitScheduler
from penstock.engine.dispatch.protocols import FetcherSide, OutboxSide
from penstock.errors import PenstockError


class Shutdown:
    """The stop of one member, if it stops. The dispatcher's thread owns it; other threads read ``error``."""

    def __init__(
        self,
        dispatch: Dispatch,
        commits: CommitScheduler,
        reporter: Reporter,
        *,
        stop_fetching: Callable[[Iterable[TopicPartition]], None],
        drain_timeout: float,
        clock: Callable[[], float],
    ) -> None:
        self._dispatch = dispatch
        self._commits = commits
        self._reporter = reporter
        self._stop_fetching = stop_fetching
        self._drain_timeout = drain_timeout
        self._clock = clock
        self._leaving = False
        self.has_begun = False
        self.leave_by = inf  # when the member leaves even if records are unfinished
        self.error: PenstockError | None = None  # the first error that stopped the member

    def attach(self, fetcher: FetcherSide, outbox: OutboxSide) -> None:
        self._fetcher, self._outbox = fetcher, outbox

    def fail(self, error: PenstockError) -> None:
        """Stop because of this error."""
        self._reporter.error(error, fatal=True)
        self.error = self.error or error
        self.begin("error")

    def begin(self, reason: str) -> None:
        """Start no further record and fetch no more; a second call has no effect."""
        if self.has_begun:
            return
        self.has_begun = True
        self._reporter.stopping(reason)
        tps = [epoch.tp for epoch in self._dispatch.epochs]
        self._dispatch.stop_dispatching(tps)
        self._stop_fetching(tps)
        self.leave_by = self._clock() + self._drain_timeout
        self._commits.commit_soon()

    def leave_if_done(self, now: float) -> None:
        """Leave the group when everything is finished and committed, or ``drain_timeout`` is over.

        Not earlier: the broker refuses commits during another member's rebalance, and only a member that keeps polling
        joins the next generation, whose commits the broker accepts.
        """
        if not self.has_begun or self._leaving:
            return
        drained = all(epoch.drained for epoch in self._dispatch.epochs) and not self._outbox.is_full
        done = drained and not self._commits.is_under_way and not self._dispatch.commits()
        if done or now >= self.leave_by:
            self._leaving = True
            self._commits.close()
            self._fetcher.leave()
