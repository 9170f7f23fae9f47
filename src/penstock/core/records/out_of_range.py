"""An offset that is not in the log any more (or not yet), and the offset at which fetching continues instead."""

from dataclasses import dataclass

from penstock.core.records.record import TopicPartition


@dataclass(frozen=True, slots=True)
class OutOfRange:
    """We wanted to fetch ``offset``, but the log only has ``low`` to ``high``; we continue at ``moved_to``."""

    tp: TopicPartition
    offset: int
    low: int
    high: int
    moved_to: int

    @classmethod
    def found(cls, tp: TopicPartition, offset: int, *, low: int, high: int, wanted: int | None) -> "OutOfRange":
        """Continue at ``wanted`` (None: the start of the log); if that is outside of the log, at its nearer end."""
        # A user who asks for an offset above the end does not want older records: nothing is replayed.
        return cls(tp, offset, low, high, low if wanted is None else max(low, min(wanted, high)))

    @property
    def skipped(self) -> int:
        """How many offsets are skipped."""
        # An offset above the end belongs to a log that was recreated: count the skipped offsets of the new log.
        return max(0, self.moved_to - (self.low if self.offset > self.high else self.offset))
