"""Exactly-once in a task: outputs, dead letters and the partition's offset are one transaction.

The marker is the group's offset of the source partition: all records below it are handled. A task first fences all
earlier producers of its partition, and only then reads the marker. So the marker is final, and of several tasks that
handle the same records, only the last one to start can commit.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa

from penstock.core.records.record import TopicPartition
from penstock.core.settings import Settings
from penstock.errors import PenstockError, StateError
from penstock.kafka import Cluster
from penstock.kafka.client.transactions import Transaction, group_metadata, transactional_id
from penstock.spark.halted_task import HaltedTaskError
from penstock.spark.pipelines.arrow_columns import to_rows

_Items = frozenset[tuple[str, Any]]


@dataclass(frozen=True)
class Transactions:
    """What a task needs for its transaction. Spark sends it to workers, with secrets, which it never prints."""

    brokers: str
    group: str
    settings: Settings

    def open(self, tp: TopicPartition) -> Transaction:
        name = transactional_id(self.group, *tp)
        group = _group_metadata(self.brokers, self.group, self._items)
        return Transaction(self.brokers, name, group=group, settings=self.settings)

    def marker(self, tp: TopicPartition) -> int:
        """Return the marker: all records below it are handled."""
        return _cluster(self.brokers, self._items).stable_offsets(self.group, [tp]).get(tp, 0)

    def fence(self, tp: TopicPartition) -> None:
        """Fence all earlier producers of this partition."""
        with self.open(tp) as transaction:
            transaction.fence()

    def move(self, tp: TopicPartition, offset: int, *, back: bool = False) -> None:
        """Set a marker, only forward unless ``back``. Fences like a task, so that no earlier task commits after it."""
        with self.open(tp) as transaction:
            transaction.fence()
            if back or offset > self.marker(tp):
                transaction.commit({tp: offset})

    @property
    def _items(self) -> _Items:
        return frozenset(self.settings.items())


# One for each worker process, which runs many tasks. A client does not survive a fork, so the worker makes its own.
@cache
def _cluster(brokers: str, settings: _Items) -> Cluster:
    return Cluster(brokers, dict(settings))


@cache
def _group_metadata(brokers: str, group: str, settings: _Items) -> Any:
    return group_metadata(brokers, group, settings=dict(settings))


@dataclass(frozen=True)
class TaskRange:
    """The offsets of one task: from ``start`` up to, and without, ``end`` of one partition."""

    tp: TopicPartition
    start: int
    end: int


def write_exactly_once(
    rows: Iterable[pa.RecordBatch], offsets: TaskRange, *, transactions: Transactions
) -> Iterator[pa.RecordBatch]:
    """Write the rows that a task made of its range, unless they were committed before: all of them, or none."""
    tp = offsets.tp
    try:
        with transactions.open(tp) as transaction:
            transaction.fence()
            marker = transactions.marker(tp)
            if offsets.start < marker < offsets.end:
                raise _moved(offsets, marker, transactions.group)
            for batch in rows:
                # Read all rows in any case: Spark counts them.
                if marker < offsets.end:
                    transaction.write(to_rows(batch))
            if marker < offsets.end:
                transaction.commit({tp: offsets.end})
    except PenstockError as error:
        raise HaltedTaskError(error) from None
    return iter(())


def _moved(offsets: TaskRange, marker: int, group: str) -> StateError:
    topic, partition = offsets.tp
    return StateError(
        f"Another client moved group {group!r} to {marker} of {topic}[{partition}] while Spark handled "
        f"{offsets.start} to {offsets.end - 1}.",
        hint="Stop other clients that commit for this group, and start again. Spark resumes at the group's offsets.",
    )
