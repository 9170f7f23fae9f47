"""The data that the dispatcher's rules take and return. The engines carry the effects out."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.core.failures.outcome import Delayed, Failed, Outcome, ProducerRecord
from penstock.core.failures.retry_topic import RetryInfo
from penstock.core.scheduling.lanes import AnyRecord, Epoch, LaneRun


@dataclass(eq=False, slots=True)
class Attempt:
    """One attempt to handle one record; the first attempt has the number 1."""

    epoch: Epoch
    record: AnyRecord
    offset: int
    attempt: int


@dataclass(eq=False, slots=True)
class Send:
    """A record to produce: an output, a dead letter (has ``failure``), or a retry record (has ``delay`` too).

    ``failure`` of a retry record can be ``Delayed``, which is no failure: the record only waits.

    The consumed record is finished when the broker has acknowledged this one.
    """

    tried: Attempt
    outgoing: ProducerRecord
    failure: Failed | Delayed | None = None
    delay: float | None = None


@dataclass(eq=False, slots=True)
class Returned:
    """A record read from a retry topic, with its parsed headers."""

    record: AnyRecord
    said: RetryInfo


@dataclass(frozen=True, slots=True)
class Pause:
    """Pause a partition. If ``rewind_to`` is set, also seek back to it: records from there on are fetched again."""

    epoch: Epoch
    rewind_to: int | None


@dataclass(slots=True)
class Effects:
    """The consequences of outcomes, for the dispatcher to carry out. A skipped record is also in ``finished``."""

    finished: list[tuple[Epoch, list[AnyRecord]]] = field(default_factory=list)
    again: dict[tuple[Epoch, int], int] = field(default_factory=dict)
    """For finished records that needed more than one attempt: the number of the attempt that succeeded."""
    skipped: list[tuple[Attempt, str]] = field(default_factory=list)
    expired: list[tuple[Attempt, str]] = field(default_factory=list)
    """Finished without a call of the handler, with the reason. These are in ``finished`` too."""
    duplicates: list[tuple[Attempt, str]] = field(default_factory=list)
    """The same, for records whose id was handled before."""
    sends: list[Send] = field(default_factory=list)
    retried: list[tuple[Attempt, Failed, float]] = field(default_factory=list)
    blocked: list[tuple[Attempt, Failed, float]] = field(default_factory=list)
    """Records that wait for an unavailable dependency. The wait is no attempt: the next attempt has the same number."""
    delayed: list[tuple[Attempt, Delayed]] = field(default_factory=list)
    """Records that wait in memory because their handler raised Later, or a header says so. The wait is no attempt."""
    halted: tuple[Attempt, Failed] | None = None
    """The failure that must stop the app: there is no dead-letter topic, or the circuit breaker is open."""


Result = tuple[LaneRun, Sequence[Outcome], bool]
"""A run, the outcomes of its next records, and whether the worker attempts no more records of it."""
