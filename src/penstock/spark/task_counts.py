"""Counts that tasks report to the driver."""

from pyspark.accumulators import AccumulatorParam

from penstock.core.reports.record_counts import Counts


class CountsInSpark(AccumulatorParam[Counts]):
    """Lets tasks count: Spark adds up what each successful one has counted, once, however often it was attempted.

    Spark's own ``observe`` cannot do it: its metrics never arrive when the observed rows go to the Kafka sink of a
    batch, and waiting for them lasts for ever.
    """

    def zero(self, value: Counts) -> Counts:  # noqa: ARG002 - Spark's signature
        return Counts()

    def addInPlace(self, value1: Counts, value2: Counts) -> Counts:  # noqa: N802 - Spark's name
        return value1 + value2
