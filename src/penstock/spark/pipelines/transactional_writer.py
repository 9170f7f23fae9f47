"""Exactly once into a topic, for pipelines whose rows stay in the task of the partition that they were read from.

Each task writes its rows and moves its partition's marker, the group's offset, in one transaction. Dead letters are
known only when the rows are made, so they come after, with markers of their own; a run that ended in between is made
good at the next start.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from penstock.app import Pipeline
from penstock.errors import ConfigError, StateError
from penstock.kafka import Cluster
from penstock.spark.columns import SINK_SCHEMA, SinkColumns
from penstock.spark.exactly_once import NO_ROWS, Markers
from penstock.spark.internals import task_count
from penstock.spark.offsets import Offsets
from penstock.spark.pipelines.unreadable import Letters
from penstock.spark.session.java_client_settings import settings_for_workers
from penstock.spark.transaction import TaskRange, Transactions, write_exactly_once

_LETTERS = ".dead-letters"

GUARANTEE = "exactly-once: rows and the group's offsets are one transaction in each task"


class TransactionalWriter(Markers):
    def write(self, rows: DataFrame, ranges: Sequence[TaskRange]) -> None:
        """``rows`` for Kafka, which the task of each number makes of the range of that number."""
        transactions, ranges = self._transactions, tuple(ranges)

        # A closure, because Spark takes only a function of one argument; small, because it travels with each task.
        def whole(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return write_exactly_once(batches, ranges[_task()], transactions=transactions)

        if task_count(rows) != len(ranges):
            raise StateError("Spark made other tasks than it planned.", hint="Nothing was written. Please report it.")
        _as_kafka_has_them(rows).mapInArrow(whole, NO_ROWS).write.format("noop").mode("append").save()
        # A task without rows may not have run.
        self.advance({each.tp: each.end for each in ranges})

    def write_here(self, letters: Letters, ends: Offsets) -> None:
        """Write what the driver has made of the range that ends there, and move all markers to its ends."""
        for tp, each in letters.items():
            rows = SinkColumns()
            rows.extend(each)
            # Where the range starts is of no interest: nobody but this driver moves these markers.
            offsets = TaskRange(tp, ends[tp], ends[tp])
            write_exactly_once([rows.take_batch()], offsets, transactions=self._transactions)
        self.set({tp: end for tp, end in ends.items() if tp not in letters})

    def set(self, offsets: Offsets) -> None:
        """Where nobody else has begun since they were settled."""
        self._cluster.commit(self._transactions.group, offsets)


@dataclass(frozen=True)
class ExactlyOnce:
    """The two writers of an output: rows by the group's own offsets, dead letters by those of a group beside it."""

    rows: TransactionalWriter
    letters: TransactionalWriter

    @classmethod
    def of(cls, pipeline: Pipeline, cluster: Cluster, *, group: str | None = None) -> Self:
        """``group`` holds the markers, where the pipeline's own is not to move."""
        group, settings = group or pipeline.group, settings_for_workers(pipeline.settings)
        return cls(
            *(
                TransactionalWriter(cluster, Transactions(cluster.brokers, name, settings))
                for name in (group, group + _LETTERS)
            )
        )


def _task() -> int:
    context = TaskContext.get()
    assert context is not None  # noqa: S101 - there is one wherever this runs
    return context.partitionId()


def _as_kafka_has_them(rows: DataFrame) -> DataFrame:
    if "partition" in rows.columns:
        raise ConfigError(
            "With exactly-once, rows cannot choose their partition.", hint="Leave the column partition out."
        )
    columns = [
        F.col(name).cast(kind) if name in rows.columns else F.lit(None).cast(kind).alias(name)
        for name, kind in (each.split(" ", 1) for each in SINK_SCHEMA.split(", ", 3))
    ]
    return rows.select(*columns)
