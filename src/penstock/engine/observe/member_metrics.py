"""A member's metrics. They are cheap enough to be always on; exporters read them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from penstock.core.records.record import TopicPartition
from penstock.core.reports.histogram import Histogram

HANDLER_BOUNDS = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 600.0)
COMMIT_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
REBALANCE_BOUNDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class Stopwatches:
    """Measures handlers, commits and rebalances. The dispatcher thread writes; other threads read the histograms."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._commit_since: float | None = None
        self._unassigned_since: float | None = clock()
        self.handler = Histogram(HANDLER_BOUNDS)
        self.commit = Histogram(COMMIT_BOUNDS)
        self.rebalance = Histogram(REBALANCE_BOUNDS)

    def worked(self, records: int, seconds: float) -> None:
        """Note that a worker took ``seconds`` for a bundle of ``records``. Each record counts with the mean."""
        if records:
            self.handler.observe(seconds / records, records)

    def commit_asked(self) -> None:
        self._commit_since = self._clock()

    def commit_answered(self) -> None:
        if self._commit_since is not None:
            self.commit.observe(self._clock() - self._commit_since)
            self._commit_since = None

    def rebalance_began(self) -> None:
        """Note that partitions are revoked or lost. The first rebalance begins with the start of the member."""
        if self._unassigned_since is None:
            self._unassigned_since = self._clock()

    def rebalance_ended(self) -> None:
        if self._unassigned_since is not None:
            self.rebalance.observe(self._clock() - self._unassigned_since)
            self._unassigned_since = None


@dataclass(frozen=True)
class MemberMetrics:
    """The metrics of one member now."""

    handler: str
    group: str
    in_flight: int
    lanes: int
    works: int
    concurrency: int
    polled_seconds_ago: float
    longest_seconds: float
    map_bytes: Mapping[TopicPartition, int]
    """The length of the offset map in each partition's last commit."""
    watches: Stopwatches
    open_breakers: int = 0
    waiting_for_rate: int = 0
    one_per_partition: bool = False
    """With ``order="partition"``: one record of a partition runs at once."""
