"""An offset that the log does not have, and where to go on."""

from dataclasses import dataclass

from penstock.core.records.record import TopicPartition


@dataclass(frozen=True, slots=True)
class OutOfRange:
    """The log, from ``low`` to ``high``, does not have ``offset``, which was to come next."""

    tp: TopicPartition
    offset: int
    low: int
    high: int
    moved_to: int

    @classmethod
    def found(cls, tp: TopicPartition, offset: int, *, low: int, high: int, wanted: int | None) -> "OutOfRange":
        """Go on at ``wanted`` (None: where the log starts), or at the end of the log that is nearest to it."""
        # Who names an offset above the end does not want what is below: nothing is replayed.
        return cls(tp, offset, low, high, low if wanted is None else max(low, min(wanted, high)))

    @property
    def skipped(self) -> int:
        """How many offsets are passed over, of those that were to come or of those that are there instead."""
        # Above the end, it is another log than before: what counts is how much of this one is left out.
        return max(0, self.moved_to - (self.low if self.offset > self.high else self.offset))
