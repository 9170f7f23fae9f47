"""Writes rows to a topic exactly once, for pipelines whose rows stay in the task that read their partition.

Each task writes its rows and commits its partition's offset in one transaction. Dead letters are known only after the
rows are written, so they have transactions and a group of their own. If a run ends in between, the next start writes
the missing dead letters.
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
from penstock.spark.internals import task_count
from penstock.spark.pipelines.arrow_columns import SINK_SCHEMA, SinkColumns
from penstock.spark.pipelines.markers import NO_ROWS, Markers
from penstock.spark.pipelines.resume_offsets import Offsets
from penstock.spark.pipelines.task_transaction import TaskRange, Transactions, write_exactly_once
from penstock.spark.pipelines.unreadable import Letters
from penstock.spark.session.worker_settings import settings_for_workers

_LETTERS = ".dead-letters"

GUARANTEE = "exactly-once: rows and the group's offsets are one transaction in each task"


class TransactionalWriter(Markers):
    def write(self, rows: DataFrame, ranges: Sequence[TaskRange]) -> None:
        """Write rows for Kafka. ``ranges`` has the offsets that each task reads, in the order of the tasks."""
        transactions, ranges = self._transactions, tuple(ranges)

        # A closure, because Spark takes only a function of one argument; small, because it travels with each task.
        def whole(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return write_exactly_once(batches, ranges[_task_number()], transactions=transactions)

        if task_count(rows) != len(ranges):
            raise StateError(
                "Spark made other tasks than it planned.", hint="Nothing was written. Please report this error."
            )
        _as_sink_columns(rows).mapInArrow(whole, NO_ROWS).write.format("noop").mode("append").save()
        # Spark may skip a task without rows; commit its offset here.
        self.advance({each.tp: each.end for each in ranges})

    def write_here(self, letters: Letters, ends: Offsets) -> None:
        """Write dead letters that the driver has made of a batch, and commit the batch's ``ends``."""
        for tp, each in letters.items():
            rows = SinkColumns()
            rows.extend(each)
            # The start does not matter: only this driver commits to this group.
            offsets = TaskRange(tp, ends[tp], ends[tp])
            write_exactly_once([rows.take_batch()], offsets, transactions=self._transactions)
        self.set({tp: end for tp, end in ends.items() if tp not in letters})

    def set(self, offsets: Offsets) -> None:
        """Commit without a transaction. Safe only after ``settle``, while no other run has started."""
        self._cluster.commit(self._transactions.group, offsets)


@dataclass(frozen=True)
class ExactlyOnce:
    """The writers of an output: rows commit to the pipeline's group, dead letters to a second group."""

    rows: TransactionalWriter
    letters: TransactionalWriter

    @classmethod
    def of(cls, pipeline: Pipeline, cluster: Cluster, *, group: str | None = None) -> Self:
        """``group`` replaces the pipeline's group, for a backfill."""
        group, settings = group or pipeline.group, settings_for_workers(pipeline.settings)
        return cls(
            *(
                TransactionalWriter(cluster, Transactions(cluster.brokers, name, settings))
                for name in (group, group + _LETTERS)
            )
        )


def _task_number() -> int:
    context = TaskContext.get()
    assert context is not None  # noqa: S101 - this runs only in tasks
    return context.partitionId()


def _as_sink_columns(rows: DataFrame) -> DataFrame:
    if "partition" in rows.columns:
        raise ConfigError(
            "With exactly-once, rows cannot choose their partition.", hint="Leave the column partition out."
        )
    columns = [
        F.col(name).cast(kind) if name in rows.columns else F.lit(None).cast(kind).alias(name)
        for name, kind in (each.split(" ", 1) for each in SINK_SCHEMA.split(", ", 3))
    ]
    return rows.select(*columns)
