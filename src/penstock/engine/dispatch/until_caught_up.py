"""When a member that runs until it has caught up may stop."""

from collections.abc import Iterable, Mapping

from penstock.core.records.out_of_range import OutOfRange
from penstock.core.records.record import TopicPartition
from penstock.core.scheduling.dispatch import Dispatch
from penstock.engine.dispatch.commit_scheduler import CommitScheduler
from penstock.engine.dispatch.partition_lifecycle import PartitionLifecycle
from penstock.engine.membership.catch_up import CatchUp


class UntilCaughtUp:
    """``ends`` are the offsets to reach; None if the member runs until it is stopped.

    The dispatcher's thread owns it. The members of a handler share one ``catch_up``.
    """

    def __init__(
        self,
        ends: Mapping[TopicPartition, int] | None,
        catch_up: CatchUp,
        dispatch: Dispatch,
        lifecycle: PartitionLifecycle,
        commits: CommitScheduler,
    ) -> None:
        self._ends = None if ends is None else dict(ends)
        self._catch_up = catch_up
        self._dispatch = dispatch
        self._lifecycle = lifecycle
        self._commits = commits

    def began(self, tps: Iterable[TopicPartition]) -> None:
        """This member has been assigned these partitions."""
        self._catch_up.began(tps)

    def recreated(self, found: OutOfRange) -> None:
        """A topic was recreated: its new log may be shorter than the offset to reach."""
        if self._ends is not None:
            self._ends[found.tp] = min(self._ends.get(found.tp, 0), found.high)

    def is_reached(self, *, in_transactions: bool) -> bool:
        """Whether this member, and every other member of the handler in this process, has finished everything."""
        if self._ends is None:
            return False
        if not self._lifecycle.assignments:
            # Other members of this process may finish everything before this member is assigned a partition.
            return bool(self._ends) and self._catch_up.have_finished(self._ends)
        # A commit past the end of the log looks caught up, until the first fetch finds that it is out of range.
        if self._lifecycle.unfetched or not self._dispatch.caught_up(self._ends):
            return False
        # Records in an open transaction are not finished: if it fails, they are handled again.
        if in_transactions and (self._commits.is_under_way or self._dispatch.commits()):
            return False
        # This member may still be assigned what another member of this process has not finished.
        self._catch_up.finished(epoch.tp for epoch in self._dispatch.epochs)
        return not self._catch_up.unfinished
