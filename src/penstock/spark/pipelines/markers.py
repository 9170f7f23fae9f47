"""Exactly-once on the driver. The tasks of a batch write it, each in its own transaction (``task_transaction.py``).

The marker of a partition is the group's committed offset: all records below it count as handled.
"""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from penstock.core.records.record import TopicPartition
from penstock.kafka import Cluster
from penstock.spark.pipelines.resume_offsets import Offsets
from penstock.spark.pipelines.task_transaction import Transactions

# The schema of a task's rows, which Spark requires. These tasks return no rows.
NO_ROWS = "nothing boolean"

# Threads that fence producers at once; each waits for a broker.
_AT_ONCE = 16


class Markers:
    """Reads and moves the markers. Driver and tasks move one only with the partition's transactional id."""

    def __init__(self, cluster: Cluster, transactions: Transactions) -> None:
        self._cluster = cluster
        self._transactions = transactions

    def settle(self, tps: Iterable[TopicPartition]) -> Offsets:
        """Fence all earlier producers, then return the markers, which are final now. Omits partitions without one."""
        tps = list(tps)
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            list(threads.map(self._transactions.fence, tps))
        return self._cluster.stable_offsets(self._transactions.group, tps) if tps else {}

    def advance(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Move markers forward where no task has done it: past offsets without a record.

        Call it only between two batches, because it fences running tasks.
        """
        committed = self._cluster.committed(self._transactions.group, offsets) if offsets else {}
        for tp, offset in offsets.items():
            if offset > committed.get(tp, 0):
                self._transactions.move(tp, offset)

    def begin(self, offsets: Mapping[TopicPartition, int], committed: Mapping[TopicPartition, int]) -> None:
        """Set the markers before the first batch. One plain commit is enough for partitions that have none."""
        fresh = {tp: offset for tp, offset in offsets.items() if tp not in committed and offset > 0}
        self._cluster.commit(self._transactions.group, fresh)
        self.advance({tp: offset for tp, offset in offsets.items() if tp in committed})

    def reset(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Set markers, also backwards: the marker of a recreated topic belongs to the old log."""
        for tp, offset in offsets.items():
            self._transactions.move(tp, offset, back=True)


class CommittedByTasks:
    """Replaces the driver's commits: with exactly-once, tasks commit, and the driver could set a marker back."""

    def commit(self, group: str, offsets: Mapping[TopicPartition, int], metadata: Mapping[TopicPartition, str]) -> None:
        """Do nothing: the tasks have committed."""
