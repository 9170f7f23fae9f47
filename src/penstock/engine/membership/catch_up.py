"""Tells the members of one handler in one process when all of them have caught up."""

import threading
from collections.abc import Iterable

from penstock.core.records.record import TopicPartition


class CatchUp:
    """Partitions that any of the members has owned in this run, and which of them are finished up to their target.

    A member that has caught up must not leave before the others: a rebalance may assign it one of their partitions.
    """

    def __init__(self) -> None:
        self._unfinished: set[TopicPartition] = set()
        self._finished: set[TopicPartition] = set()
        self._lock = threading.Lock()

    def began(self, tps: Iterable[TopicPartition]) -> None:
        with self._lock:
            self._unfinished.update(set(tps) - self._finished)

    def finished(self, tps: Iterable[TopicPartition]) -> None:
        with self._lock:
            self._finished.update(tps)
            self._unfinished -= self._finished

    def have_finished(self, tps: Iterable[TopicPartition]) -> bool:
        with self._lock:
            return self._finished.issuperset(tps)

    @property
    def unfinished(self) -> set[TopicPartition]:
        with self._lock:
            return set(self._unfinished)
