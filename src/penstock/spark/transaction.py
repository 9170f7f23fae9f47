"""Exactly once: a task's outputs and dead letters, and how far it has come, in one transaction.

The group's offset of the source partition is the marker of what counts already. A task first ends all earlier
transactions of its partition, and only then reads the marker. So what it reads is final; and of several that handle the
same records, only the last to begin can commit.
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
from penstock.spark.columns import to_rows
from penstock.spark.finished import Finished, above
from penstock.spark.offsets import Offsets
from penstock.spark.spark_errors import TOO_LARGE, named
from penstock.spark.stretch import Stretch
from penstock.spark.task import HaltedTaskError, handle_task

_Items = frozenset[tuple[str, Any]]


@dataclass(frozen=True)
class Transactions:
    """What a task needs for its transaction. It travels to the workers, secrets included, and prints none of them.

    ``ends`` are where the batch ends in each partition. There may be offsets without records before it, so the last
    record does not tell. ``finished`` is what the local engine had finished ahead, so that its outputs count.
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
        """All that lies below it counts already."""
        return _cluster(self.brokers, self._items).settled(self.group, [tp]).get(tp, 0)

    def fence(self, tp: TopicPartition) -> None:
        """End all that began before."""
        with self.open(tp) as transaction:
            transaction.fence()

    def commit_at(self, tp: TopicPartition, end: int) -> tuple[int, str]:
        """The lowest unfinished offset where all below this one is finished, and a map of what is finished above."""
        ranges = self.finished.get(tp, ())
        point = next((stop for start, stop in ranges if start <= end < stop), end)
        return point, encode(point, above({tp: ranges}, {tp: point}).get(tp, [])) or ""

    def move(self, tp: TopicPartition, offset: int, *, back: bool = False) -> None:
        """Set a marker, only forward unless told: as a task would, so that none that began before commits after it."""
        with self.open(tp) as transaction:
            transaction.fence()
            if back or offset > self.marker(tp):
                transaction.commit({tp: self.commit_at(tp, offset)})

    @property
    def _items(self) -> _Items:
        return frozenset(self.settings.items())


# Once for each worker process, which lives for many tasks. A client does not survive a fork, so it is made in there.
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
    """The whole of a task, sink included, so no rows come of it. ``count`` hears of what did not count already."""
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
    """What one task has: the offsets from ``start`` up to and without ``end`` of one partition."""

    tp: TopicPartition
    start: int
    end: int


def write_exactly_once(
    rows: Iterable[pa.RecordBatch], offsets: TaskRange, *, transactions: Transactions
) -> Iterator[pa.RecordBatch]:
    """The rows that a task made of its range; all of them count already, or none does."""
    tp = offsets.tp
    try:
        with transactions.open(tp) as transaction:
            transaction.fence()
            marker = transactions.marker(tp)
            if offsets.start < marker < offsets.end:
                raise _moved(offsets, marker, transactions.group)
            for batch in rows:
                # Read to the end in any case: Spark counts what was read.
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
        f"Somebody moved group {group!r} to {marker} of {topic}[{partition}] while {offsets.start} to "
        f"{offsets.end - 1} were being handled.",
        hint="Stop whatever else commits for this group, and start again: it goes on where the group stands.",
    )


def _named(error: PenstockError, handler: Handler) -> PenstockError:
    """In the words that the other sink has for it."""
    inner = None if error.__cause__ is None else kafka_error(error.__cause__)
    if inner is None or inner.code() != Code.MSG_SIZE_TOO_LARGE:
        return error
    problem, hint = TOO_LARGE
    return HandlerError(problem.format(**named(handler)), hint=hint)
