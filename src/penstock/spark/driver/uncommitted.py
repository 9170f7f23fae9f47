"""Which positions of a driver's partitions the group does not have yet."""

from collections.abc import Container, Iterable, Mapping

from penstock.core.progress.slices import PartitionSlices
from penstock.core.records.record import TopicPartition
from penstock.spark.driver.group_member import Commits


class Uncommitted:
    """``owned`` are the partitions of the driver, which alone uses this."""

    def __init__(self, owned: Mapping[TopicPartition, PartitionSlices]) -> None:
        self._owned = owned
        self._changed: set[TopicPartition] = set()
        self._asked: set[TopicPartition] = set()

    def add(self, tps: Iterable[TopicPartition]) -> None:
        self._changed.update(tps)

    def forget(self, tp: TopicPartition) -> None:
        self._changed.discard(tp)

    def take(self, without: Container[TopicPartition]) -> Commits:
        """Return what to commit now, without partitions whose last commit is not answered yet."""
        due = {tp for tp in self._changed - self._asked if tp not in without}
        self._asked |= due
        return self._commits(due)

    @property
    def partitions(self) -> set[TopicPartition]:
        """Those whose position the group does not have."""
        return {*self._changed}

    @property
    def are_asked(self) -> bool:
        """Whether a commit is not answered yet."""
        return bool(self._asked)

    def now(self, tps: Iterable[TopicPartition] | None = None) -> Commits:
        """Return what to commit of these partitions, or of all."""
        return self._commits(self._changed if tps is None else self._changed.intersection(tps))

    def answered(self, tp: TopicPartition, commit: tuple[int, str], *, accepted: bool) -> None:
        self._asked.discard(tp)
        each = self._owned.get(tp)
        if accepted and (each is None or (each.position, each.metadata) == commit):
            self._changed.discard(tp)

    def _commits(self, tps: Iterable[TopicPartition]) -> Commits:
        found = {tp: self._owned[tp] for tp in tps if tp in self._owned}
        return {tp: (each.position, each.metadata) for tp, each in found.items()}
