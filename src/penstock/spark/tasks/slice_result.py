"""What a task returns to the driver for each slice: how far it got, counts, events, and the error that ended it."""

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from penstock.core.progress.slices import Reached
from penstock.core.records.record import TopicPartition
from penstock.core.reports.events import Event
from penstock.core.reports.record_counts import Counts
from penstock.errors import PenstockError


@dataclass(frozen=True)
class SliceResult:
    """``reached`` is None if nothing of the slice counts.

    ``is_committed``: the task itself has committed ``reached``, in a transaction. ``out_of_range``: the log does not
    have the next offset. ``error`` ended the slice; with ``may_pass``, another attempt may succeed. ``worker`` is the
    Python worker that ran the slice.
    """

    tp: TopicPartition
    epoch: int
    reached: Reached | None
    counts: Counts = field(default_factory=Counts)
    route_counts: Mapping[str, Counts] = field(default_factory=dict)
    events: Sequence[Event] = ()
    seconds: float = 0.0
    is_committed: bool = False
    out_of_range: bool = False
    error: PenstockError | None = None
    may_pass: bool = False
    worker: str = ""

    def packed(self) -> bytes:
        return pickle.dumps(self)

    @staticmethod
    def unpacked(data: bytes) -> "SliceResult":
        found = pickle.loads(data)  # noqa: S301 - our own task wrote it
        if not isinstance(found, SliceResult):
            raise TypeError(f"a task returned {type(found).__name__}")
        return found
