"""Checks that a task has records of one partition, in order, as exactly-once needs it, and skips handled ones."""

from collections.abc import Iterable, Iterator
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.records.record import TopicPartition
from penstock.errors import StateError


class Stretch:
    """A range of one partition's records, in the order of offsets; anything else is refused.

    A marker, the group's offset, means that all records below it are handled. If a partition were split over tasks, the
    later part could be committed first, and the earlier part would count as handled.
    """

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = (batch for batch in batches if len(batch))
        first = next(self._batches, None)
        self._ahead = [] if first is None else [first]
        self.tp: TopicPartition | None = None if first is None else _tps(first)[0]
        """The partition; None if there are no records."""
        self.end = 0
        """The offset after the last record that ``above`` has read."""

    def above(self, marker: int) -> Iterator[pa.RecordBatch]:
        """Return the records at the marker or above."""
        for batch in chain(self._ahead, self._batches):
            self._check(batch)
            self.end = batch.column("offset")[-1].as_py() + 1
            below = pc.sum(pc.less(batch.column("offset"), marker)).as_py()
            if below < len(batch):
                yield batch.slice(below)

    def _check(self, batch: pa.RecordBatch) -> None:
        foreign = [tp for tp in _tps(batch) if tp != self.tp]
        if foreign:
            raise _refused(f"records of {self.tp} and of {foreign[0]}")
        offsets = batch.column("offset")
        first, rise = offsets[0].as_py(), pc.all(pc.greater(offsets.slice(1), offsets.slice(0, len(offsets) - 1)))
        if first < self.end or rise.as_py() is False:
            raise _refused(f"records of {self.tp} that are not in the order of their offsets")


def _tps(batch: pa.RecordBatch) -> list[TopicPartition]:
    """Return the partitions of these records."""
    distinct = pa.Table.from_batches([batch]).group_by(["topic", "partition"], use_threads=False).aggregate([])
    return [(row["topic"], row["partition"]) for row in distinct.to_pylist()]


def _refused(what: str) -> StateError:
    return StateError(
        f"A task of Spark holds {what}; exactly-once needs one partition a task, in order.",
        hint="No record of it was committed. Leave out options that split or mix partitions, such as minPartitions.",
    )
