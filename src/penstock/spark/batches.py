"""Runs a handler's batches: one Spark job each. When it ends, outputs and dead letters are in Kafka."""

from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from penstock.app import Handler
from penstock.core.reports.record_counts import Counts
from penstock.spark.arrow_columns import SINK_SCHEMA
from penstock.spark.asking import engine_is_on_the_driver
from penstock.spark.batch_barrier import BatchBarrier
from penstock.spark.exactly_once import ExactlyOnceSink
from penstock.spark.scaling import spread
from penstock.spark.task import handle_task
from penstock.spark.task_counts import CountsInSpark


class Batches(BatchBarrier):
    def __init__(
        self,
        session: SparkSession,
        handler: Handler,
        sink: Mapping[str, str],
        *,
        exactly_once: ExactlyOnceSink | None = None,
    ) -> None:
        """``sink`` has the options of Spark's Kafka writer; ``exactly_once`` replaces that writer."""
        super().__init__()
        self._handler = handler
        self._sink = sink
        self._exactly_once = exactly_once
        self._counted = session.sparkContext.accumulator(Counts(), CountsInSpark())

    def write(self, rows: DataFrame, number: int) -> Counts:
        before = self._counted.value
        self._write(rows, number)
        return self._counted.value - before

    def _write(self, source: DataFrame, number: int) -> None:
        """Write outputs and dead letters in one write, each to its topic. The broker has them all when this returns."""
        handler, count = self._handler, self._counted.add
        if self._exactly_once is not None:
            self._exactly_once.write(source, number, handler, count)
            return

        # A closure, because Spark accepts only a function of one argument. Small, because each task gets a copy.
        def stage(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            engine_is_on_the_driver()
            return handle_task(handler, batches, count=count)

        spread(source, handler).mapInArrow(stage, SINK_SCHEMA).write.format("kafka").options(**self._sink).save()
