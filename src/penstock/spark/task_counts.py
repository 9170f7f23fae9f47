"""Counts that tasks report to the driver."""

from pyspark.accumulators import AccumulatorParam

from penstock.core.reports.record_counts import Counts


class CountsInSpark(AccumulatorParam[Counts]):
    """An accumulator: Spark adds the counts of each successful task once, however often it attempted the task.

    Spark's ``observe`` cannot replace it: its metrics never arrive if the rows go to the Kafka sink of a batch.
    """

    def zero(self, value: Counts) -> Counts:  # noqa: ARG002 - Spark's signature
        return Counts()

    def addInPlace(self, value1: Counts, value2: Counts) -> Counts:  # noqa: N802 - Spark's name
        return value1 + value2
