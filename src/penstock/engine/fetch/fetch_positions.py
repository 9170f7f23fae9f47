"""Fetch positions of the owned partitions: pause, resume, seek. Runs on the fetcher thread."""

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, KafkaException
from confluent_kafka import TopicPartition as KafkaTopicPartition

from penstock.core.records.record import TopicPartition


class FetchPositions:
    """Where each owned partition is fetched, and which partitions are paused.

    With ``cooperates`` the consumer's assignment is changed incrementally, otherwise as a whole. With ``only_fetches``
    the consumer is not the group member (a self-managed member is), so this class must unassign revoked partitions.
    """

    def __init__(self, consumer: Any, *, cooperates: bool, only_fetches: bool = False) -> None:
        self._consumer = consumer
        self._cooperates = cooperates or only_fetches
        self._only_fetches = only_fetches
        self._next: dict[TopicPartition, int] = {}  # the next offset to fetch of each owned partition
        self._unfetched: set[TopicPartition] = set()  # neither a record nor the end came since the assignment
        self._paused_by_dispatcher: set[TopicPartition] = set()
        self._paused: set[TopicPartition] = set()  # in the client
        self._pending_seeks: dict[TopicPartition, int] = {}  # the client has not accepted these offsets yet

    def position(self, tp: TopicPartition) -> int:
        """Return the next offset to fetch; a negative number is the start of the log."""
        return self._next[tp]

    @property
    def owned(self) -> set[TopicPartition]:
        return set(self._next)

    @property
    def unpaused(self) -> set[TopicPartition]:
        """Owned partitions that neither the dispatcher nor a pending seek stops."""
        return self._next.keys() - self._paused_by_dispatcher - self._pending_seeks.keys()

    @property
    def is_paused(self) -> bool:
        """Whether every owned partition is paused."""
        return self._paused >= self._next.keys()

    def add(self, starts: Mapping[TopicPartition, int | None]) -> None:
        """Start to fetch these partitions at an offset, or, for None, at the start of the log."""
        new = {tp: OFFSET_BEGINNING if offset is None else offset for tp, offset in starts.items()}
        self._next.update(new)
        self._unfetched.update(new)
        if self._cooperates:
            self._consumer.incremental_assign(_at(new))
        else:
            self._consumer.assign(_at(self._next))

    def remove(self, tps: Collection[TopicPartition]) -> None:
        """Forget partitions that were revoked or lost.

        A consumer that is a group member has unassigned them already.
        """
        self._release(tps)
        if self._only_fetches:
            # A broken consumer refuses this. The dispatcher drops records of partitions that it does not own.
            with suppress(KafkaException):
                self._consumer.incremental_unassign(_partitions(tp for tp in tps if tp in self._next))
        for tp in tps:
            self._next.pop(tp, None)
            self._unfetched.discard(tp)
            self._pending_seeks.pop(tp, None)
            self._paused_by_dispatcher.discard(tp)

    def passed(self, tp: TopicPartition, offset: int) -> bool:
        """Note that all records below this offset were fetched; only ``seek`` and ``reassign_at`` go back.

        Returns whether that was not known: the position moved, or nothing was fetched since the assignment. The end of
        a partition, as one poll reports it, may be before records of the same poll.
        """
        before = self._next.get(tp)
        if before is None:  # it was revoked during the poll
            return False
        if offset > before:
            self._next[tp] = offset
        elif tp not in self._unfetched:
            return False
        self._unfetched.discard(tp)
        return True

    def knows_end(self, tp: TopicPartition, offset: int) -> bool:
        """Return whether ``passed`` would return False for this end of a partition."""
        return self._next.get(tp, -1) >= offset and tp not in self._unfetched

    def set_paused(self, *, everything: bool) -> None:
        """Make the client pause all owned partitions, or exactly those that the dispatcher has paused."""
        wanted = self._next.keys() & self._paused_by_dispatcher if not everything else set(self._next)
        if wanted != self._paused:
            self._consumer.pause(_partitions(wanted - self._paused))
            self._consumer.resume(_partitions(self._paused - wanted))
            self._paused = wanted

    def pause(self, tps: Iterable[TopicPartition]) -> None:
        self._paused_by_dispatcher.update(self._next.keys() & set(tps))
        self.set_paused(everything=self.is_paused)

    def resume(self, tps: Iterable[TopicPartition]) -> None:
        """The next ``set_paused`` passes this on to the client."""
        self._paused_by_dispatcher.difference_update(tps)

    def seek(self, tp: TopicPartition, offset: int) -> None:
        self._next[tp] = offset
        try:
            self._consumer.seek(KafkaTopicPartition(*tp, offset))
        except KafkaException:  # the client does not fetch it, for example because its last offset was out of range
            self.reassign_at(tp, offset)

    def reassign_at(self, tp: TopicPartition, offset: int) -> None:
        """Restart a partition that the client has stopped fetching. The client refuses to seek in such a partition."""
        if tp in self._next:
            self._pending_seeks[tp] = offset

    def retry_seeks(self) -> None:
        """Restart partitions at their pending offsets.

        During a rebalance the client refuses, and the next call retries.
        """
        if not self._pending_seeks:
            return
        self._next.update(self._pending_seeks)
        try:
            self._release(self._pending_seeks if self._cooperates else self._next)
            if self._cooperates:
                with suppress(KafkaException):  # an earlier attempt may have unassigned it
                    self._consumer.incremental_unassign(_partitions(self._pending_seeks))
                self._consumer.incremental_assign(_at(self._pending_seeks))
            else:
                self._consumer.assign(_at(self._next))
        except KafkaException:
            return
        self._pending_seeks.clear()

    def _release(self, tps: Iterable[TopicPartition]) -> None:
        """Resume these partitions: the client remembers a pause and applies it when the partition is assigned again."""
        paused = self._paused.intersection(tps)
        with suppress(KafkaException):  # a broken consumer remembers no pauses
            self._consumer.resume(_partitions(paused))
        self._paused -= paused


def _partitions(tps: Iterable[TopicPartition]) -> list[KafkaTopicPartition]:
    return [KafkaTopicPartition(*tp) for tp in tps]


def _at(offsets: Mapping[TopicPartition, int]) -> list[KafkaTopicPartition]:
    return [KafkaTopicPartition(*tp, offset) for tp, offset in offsets.items()]
