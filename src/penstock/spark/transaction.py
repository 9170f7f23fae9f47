"""Exactly-once in a task: outputs, dead letters and the partition's offset are one transaction.

The marker is the group's offset of the source partition: all records below it are handled. A task first fences all
earlier producers of its partition, and only then reads the marker. So the marker is final, and of several tasks that
handle the same records, only the last one to start can commit.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pyarrow as pa

from penstock.app import Handler
from penstock.core.progress.offset_map import encode
from penstock.core.records.record import TopicPartition
from penstock.core.reports.record_counts import Counts
from penstock.core.settings import Settings
from penstock.errors import HandlerError, PenstockError, StateError
from penstock.kafka import Cluster
from penstock.kafka.client.transactions import Transaction, group_metadata, transactional_id
from penstock.kafka.error_codes import Code
from penstock.kafka.errors import kafka_error
from penstock.spark.arrow_columns import to_rows
from penstock.spark.finished import Finished, above
from penstock.spark.resume_offsets import Offsets
from penstock.spark.spark_errors import TOO_LARGE, named
from penstock.spark.stretch import Stretch
from penstock.spark.task import HaltedTaskError, handle_task

_Items = frozenset[tuple[str, Any]]


@dataclass(frozen=True)
class Transactions:
    """What a task needs for its transaction. Spark sends it to workers, with secrets, which it never prints.

    ``ends`` are the end offsets of the batch: the last record may be below, because offsets may have no record.
    ``finished`` has the records above the group's offsets that the local engine has finished.
    """

    brokers: str
    group: str
    settings: Settings
    ends: Offsets = field(default_factory=dict)
    finished: Finished = field(default_factory=dict)

    def open(self, tp: TopicPartition) -> Transaction:
        name = transactional_id(self.group, *tp)
        group = _group_metadata(self.brokers, self.group, self._items)
        return Transaction(self.brokers, name, group=group, settings=self.settings)

    def marker(self, tp: TopicPartition) -> int:
        """Return the marker: all records below it are handled."""
        return _cluster(self.brokers, self._items).settled(self.group, [tp]).get(tp, 0)

    def fence(self, tp: TopicPartition) -> None:
        """Fence all earlier producers of this partition."""
        with self.open(tp) as transaction:
            transaction.fence()

    def commit_at(self, tp: TopicPartition, end: int) -> tuple[int, str]:
        """Return the offset and the offset map to commit when all records below ``end`` are finished."""
        ranges = self.finished.get(tp, ())
        point = next((stop for start, stop in ranges if start <= end < stop), end)
        return point, encode(point, above({tp: ranges}, {tp: point}).get(tp, [])) or ""

    def move(self, tp: TopicPartition, offset: int, *, back: bool = False) -> None:
        """Set a marker, only forward unless ``back``. Fences like a task, so that no earlier task commits after it."""
        with self.open(tp) as transaction:
            transaction.fence()
            if back or offset > self.marker(tp):
                transaction.commit({tp: self.commit_at(tp, offset)})

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


def handle_exactly_once(
    handler: Handler,
    batches: Iterable[pa.RecordBatch],
    *,
    transactions: Transactions,
    count: Callable[[Counts], None],
) -> Iterator[pa.RecordBatch]:
    """Run a whole task and write its outputs, so it returns no rows. Calls ``count`` for records not handled before."""
    stretch = Stretch(batches)
    tp = stretch.tp
    if tp is None:
        return iter(())
    try:
        with transactions.open(tp) as transaction:
            transaction.fence()
            marker = transactions.marker(tp)
            for made in handle_task(handler, stretch.above(marker), count=count):
                transaction.write(to_rows(made))
            end = max(stretch.end, transactions.ends.get(tp, 0))
            if end > marker:
                transaction.commit({tp: transactions.commit_at(tp, end)})
    except PenstockError as error:
        raise HaltedTaskError(_named(error, handler)) from None
    return iter(())


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
                transaction.commit({tp: transactions.commit_at(tp, offsets.end)})
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


def _named(error: PenstockError, handler: Handler) -> PenstockError:
    """Return the same error as the sink for at-least-once has for a record that is too large."""
    inner = None if error.__cause__ is None else kafka_error(error.__cause__)
    if inner is None or inner.code() != Code.MSG_SIZE_TOO_LARGE:
        return error
    problem, hint = TOO_LARGE
    return HandlerError(problem.format(**named(handler)), hint=hint)
