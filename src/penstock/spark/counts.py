"""How many records a task, a batch or a run has read, written, dead-lettered and skipped."""

from dataclasses import dataclass

from pyspark.accumulators import AccumulatorParam


@dataclass(frozen=True)
class Counts:
    read: int = 0
    written: int = 0
    dead_lettered: int = 0
    skipped: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            self.read + other.read,
            self.written + other.written,
            self.dead_lettered + other.dead_lettered,
            self.skipped + other.skipped,
        )

    def __sub__(self, other: "Counts") -> "Counts":
        return Counts(
            self.read - other.read,
            self.written - other.written,
            self.dead_lettered - other.dead_lettered,
            self.skipped - other.skipped,
        )


class CountsInSpark(AccumulatorParam[Counts]):
    """Lets tasks count: Spark adds up what each successful one has counted, once, however often it was attempted.

    Spark's own ``observe`` cannot do it: its metrics never arrive when the observed rows go to the Kafka sink of a
    batch, and waiting for them lasts for ever.
    """

    def zero(self, value: Counts) -> Counts:  # noqa: ARG002 - Spark's signature
        return Counts()

    def addInPlace(self, value1: Counts, value2: Counts) -> Counts:  # noqa: N802 - Spark's name
        return value1 + value2
