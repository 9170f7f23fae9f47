"""Pausing, resuming and moving within the partitions that are owned, on the fetcher's thread."""

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, KafkaException
from confluent_kafka import TopicPartition as KafkaTopicPartition

from penstock.core.records.record import TopicPartition


class FetchPositions:
    """``cooperates`` says how the client wants its assignment changed: in parts, or always as a whole.

    A client that ``only_fetches`` is no member, and has to be told what to stop fetching.
    """

    def __init__(self, consumer: Any, *, cooperates: bool, only_fetches: bool = False) -> None:
        self._consumer = consumer
        self._cooperates = cooperates or only_fetches
        self._only_fetches = only_fetches
        self._next: dict[TopicPartition, int] = {}  # where fetching is, for each partition that is owned
        self._slow: set[TopicPartition] = set()  # paused one by one, by the dispatcher
        self._paused: set[TopicPartition] = set()
        self._stuck: dict[TopicPartition, int] = {}  # to go on from here, as soon as the client allows it

    def position(self, tp: TopicPartition) -> int:
        """Where fetching is; below 0 where that is the start of the log."""
        return self._next[tp]

    @property
    def owned(self) -> set[TopicPartition]:
        return set(self._next)

    @property
    def flowing(self) -> set[TopicPartition]:
        """Those that nothing is to hold back, but for a want of room."""
        return self._next.keys() - self._slow - self._stuck.keys()

    @property
    def is_paused(self) -> bool:
        """Whether nothing can come at all."""
        return self._paused >= self._next.keys()

    def add(self, starts: Mapping[TopicPartition, int | None]) -> None:
        """Begin to fetch these, from an offset or from where the log starts."""
        new = {tp: OFFSET_BEGINNING if offset is None else offset for tp, offset in starts.items()}
        self._next.update(new)
        if self._cooperates:
            self._consumer.incremental_assign(_at(new))
        else:
            self._consumer.assign(_at(self._next))

    def remove(self, tps: Collection[TopicPartition]) -> None:
        """They are not ours any more; a client that is a member stops to fetch them by itself."""
        self._release(tps)
        if self._only_fetches:
            # A consumer that broke refuses it; what would still come of these partitions is dropped.
            with suppress(KafkaException):
                self._consumer.incremental_unassign(_partitions(tp for tp in tps if tp in self._next))
        for tp in tps:
            self._next.pop(tp, None)
            self._stuck.pop(tp, None)
            self._slow.discard(tp)

    def passed(self, tp: TopicPartition, offset: int) -> None:
        """Everything below this offset was fetched."""
        if tp in self._next:
            self._next[tp] = offset

    def hold(self, *, everything: bool) -> None:
        """Pause what is slow, or all that is owned, and nothing else."""
        wanted = self._next.keys() & self._slow if not everything else set(self._next)
        if wanted != self._paused:
            self._consumer.pause(_partitions(wanted - self._paused))
            self._consumer.resume(_partitions(self._paused - wanted))
            self._paused = wanted

    def slow_down(self, tps: Iterable[TopicPartition]) -> None:
        self._slow.update(self._next.keys() & set(tps))
        self.hold(everything=self.is_paused)

    def speed_up(self, tps: Iterable[TopicPartition]) -> None:
        self._slow.difference_update(tps)

    def go_back(self, tp: TopicPartition, offset: int) -> None:
        self._next[tp] = offset
        try:
            self._consumer.seek(KafkaTopicPartition(*tp, offset))
        except KafkaException:  # it is not being fetched, for example because its last offset was out of range
            self.go_on(tp, offset)

    def go_on(self, tp: TopicPartition, offset: int) -> None:
        """Fetch a partition again that the client has given up on, which no seek can do."""
        if tp in self._next:
            self._stuck[tp] = offset

    def unstick(self) -> None:
        """The client takes no change in the middle of a rebalance, so this is tried until it does."""
        if not self._stuck:
            return
        self._next.update(self._stuck)
        try:
            self._release(self._stuck if self._cooperates else self._next)
            if self._cooperates:
                with suppress(KafkaException):  # it may be out already, from an attempt before
                    self._consumer.incremental_unassign(_partitions(self._stuck))
                self._consumer.incremental_assign(_at(self._stuck))
            else:
                self._consumer.assign(_at(self._next))
        except KafkaException:
            return
        self._stuck.clear()

    def _release(self, tps: Iterable[TopicPartition]) -> None:
        """The client keeps a pause for when a partition comes back, which nobody would then know of."""
        paused = self._paused.intersection(tps)
        with suppress(KafkaException):  # a consumer that broke keeps nothing
            self._consumer.resume(_partitions(paused))
        self._paused -= paused


def _partitions(tps: Iterable[TopicPartition]) -> list[KafkaTopicPartition]:
    return [KafkaTopicPartition(*tp) for tp in tps]


def _at(offsets: Mapping[TopicPartition, int]) -> list[KafkaTopicPartition]:
    return [KafkaTopicPartition(*tp, offset) for tp, offset in offsets.items()]
