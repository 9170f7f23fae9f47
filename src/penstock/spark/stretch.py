"""The records of a task as exactly-once needs them: of one partition, in order, from its marker on."""

from collections.abc import Iterable, Iterator
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.records.record import TopicPartition
from penstock.errors import StateError


class Stretch:
    """A stretch of one partition, in the order of its offsets; anything else is refused.

    A marker says something only about such a stretch: were a partition split over tasks, the later part could be
    committed first, and the earlier would be taken for done.
    """

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = (batch for batch in batches if len(batch))
        first = next(self._batches, None)
        self._ahead = [] if first is None else [first]
        self.tp: TopicPartition | None = None if first is None else _tps(first)[0]
        """Where they are from; None where there are none."""
        self.end = 0
        """The offset after the last record that was looked at."""

    def above(self, marker: int) -> Iterator[pa.RecordBatch]:
        """Those that do not lie below the marker."""
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
    """All that these records are from."""
    distinct = pa.Table.from_batches([batch]).group_by(["topic", "partition"], use_threads=False).aggregate([])
    return [(row["topic"], row["partition"]) for row in distinct.to_pylist()]


def _refused(what: str) -> StateError:
    return StateError(
        f"A task of Spark holds {what}; exactly-once needs one partition a task, in order.",
        hint="Nothing of it was committed. Leave out what splits or mixes partitions, such as minPartitions.",
    )
