"""Exactly once, seen from the driver: a batch is written by its tasks, each in a transaction of its own."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame

from penstock.app import Handler
from penstock.core.records.record import TopicPartition
from penstock.core.reports.record_counts import Counts
from penstock.kafka import Cluster
from penstock.spark.asking import engine_is_on_the_driver
from penstock.spark.checkpoint import Checkpoint
from penstock.spark.finished import Finished
from penstock.spark.offsets import Offsets
from penstock.spark.session.java_client_settings import settings_for_workers
from penstock.spark.transaction import Transactions, handle_exactly_once

# Spark wants to know what a task gives back, and these give back nothing.
NO_ROWS = "nothing boolean"

# Fencing is waiting for a broker.
_AT_ONCE = 16


class Markers:
    """How far each partition counts. What moves one goes by the partition's transactional id, here as in the tasks."""

    def __init__(self, cluster: Cluster, transactions: Transactions) -> None:
        self._cluster = cluster
        self._transactions = transactions

    def settle(self, tps: Iterable[TopicPartition]) -> Offsets:
        """Where they stand once nobody who began before can move them any more; without those that were never set."""
        tps = list(tps)
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            list(threads.map(self._transactions.fence, tps))
        return self._cluster.settled(self._transactions.group, tps) if tps else {}

    def advance(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Move markers on, where no task has: past offsets that hold no record for us.

        Only between two batches: a task that runs meanwhile would be taken for one of the past.
        """
        there = self._cluster.committed(self._transactions.group, offsets) if offsets else {}
        for tp, offset in offsets.items():
            if offset > there.get(tp, 0):
                self._transactions.move(tp, offset)

    def begin(self, offsets: Mapping[TopicPartition, int], committed: Mapping[TopicPartition, int]) -> None:
        """Before the first batch. Where nothing was committed yet, nobody can be set back: one commit will do."""
        fresh = {tp: offset for tp, offset in offsets.items() if tp not in committed and offset > 0}
        self._cluster.commit(self._transactions.group, fresh)
        self.advance({tp: offset for tp, offset in offsets.items() if tp in committed})

    def reset(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Set markers, backwards too: where a log was made anew, what they say is of the old one."""
        for tp, offset in offsets.items():
            self._transactions.move(tp, offset, back=True)


class ExactlyOnceSink(Markers):
    """Where a handler's batches go."""

    def __init__(
        self, handler: Handler, cluster: Cluster, checkpoint: Checkpoint, finished: Finished | None = None
    ) -> None:
        """``finished`` is what the local engine had finished ahead of the group's offsets."""
        settings = settings_for_workers(handler.settings)
        super().__init__(cluster, Transactions(cluster.brokers, handler.group, settings, finished=finished or {}))
        self._checkpoint = checkpoint

    def write(self, source: DataFrame, number: int, handler: Handler, count: Callable[[Counts], None]) -> None:
        """When it returns, all that the batch led to is committed, and the group stands at its end."""
        ends = self._checkpoint.offsets_of(number)
        transactions = replace(self._transactions, ends=ends)

        # A closure, because Spark takes only a function of one argument; small, because it travels with each task.
        def whole(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            engine_is_on_the_driver()
            return handle_exactly_once(handler, batches, transactions=transactions, count=count)

        source.mapInArrow(whole, NO_ROWS).write.format("noop").mode("append").save()
        self.advance(ends)


class CommittedByTasks:
    """What stands in for commits of the driver. Its own, beside those of tasks, could set a marker back."""

    def commit(self, group: str, offsets: Mapping[TopicPartition, int], metadata: Mapping[TopicPartition, str]) -> None:
        """It has been done."""
