"""What commands have paused of one handler (``penstock pause``): all of its partitions, or some.

A paused partition keeps its records, its epoch and its place in the group: it is fetched no further, and none of its
records is handed out. What workers have finishes, and is committed. The pause belongs to the member, not to an epoch,
so it survives a rebalance.
"""

from collections.abc import Collection, Iterable, Mapping

from penstock.core.records.record import TopicPartition
from penstock.core.scheduling.lanes import Epoch
from penstock.core.scheduling.schedule import Schedule


class PausedPartitions:
    """Which partitions are paused, whether they are owned now or not."""

    def __init__(self) -> None:
        self.covers_all = False
        self.partitions: frozenset[TopicPartition] = frozenset()
        """Those that were paused one by one."""

    @property
    def has_any(self) -> bool:
        return self.covers_all or bool(self.partitions)

    def covers(self, tp: TopicPartition) -> bool:
        return self.covers_all or tp in self.partitions

    def pause(self, tps: Collection[TopicPartition] = ()) -> None:
        """Pause these partitions; without any, all, also those that are assigned later."""
        self.covers_all |= not tps
        self.partitions |= frozenset(tps)

    def resume(self, tps: Collection[TopicPartition] = ()) -> None:
        """Resume these partitions; without any, all, also those that were paused one by one."""
        if not tps:
            self.covers_all = False
        self.partitions = self.partitions - frozenset(tps) if tps else frozenset()


class CommandedPause(PausedPartitions):
    """Holds up the lanes of paused partitions. ``epochs`` are those of the member; ``Dispatch`` changes them."""

    def __init__(self, epochs: Mapping[TopicPartition, Epoch], schedule: Schedule) -> None:
        super().__init__()
        self._epochs = epochs
        self._schedule = schedule

    def pause(self, tps: Collection[TopicPartition] = ()) -> None:
        super().pause(tps)
        self._apply()

    def resume(self, tps: Collection[TopicPartition] = ()) -> None:
        super().resume(tps)
        self._apply()

    def began(self, epoch: Epoch) -> None:
        """This epoch begins."""
        if self.covers(epoch.tp):
            self._schedule.pause(epoch)

    def stopped(self, epochs: Iterable[Epoch]) -> None:
        """These epochs end: their pause is over.

        At most once, records that are committed run even now, because Kafka delivers them to nobody else.
        """
        for epoch in epochs:
            if epoch.is_paused:
                self._schedule.resume(epoch)

    def _apply(self) -> None:
        for epoch in self._epochs.values():
            if epoch.is_ending or epoch.is_paused is self.covers(epoch.tp):
                continue
            if epoch.is_paused:
                self._schedule.resume(epoch)
            else:
                self._schedule.pause(epoch)
