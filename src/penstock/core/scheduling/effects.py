"""The data that the dispatcher's rules take and return. The engines carry the effects out."""

from collections.abc import Iterable, Iterator, Sequence
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
class OutputSet:
    """The outputs of one record that has several. They count together, and each has a ``Send`` that refers to this."""

    count: int
    unacknowledged: int
    is_over: bool = False  # the broker refused one of them, so the answers to the others have no effect

    def acknowledge(self) -> bool:
        """The broker has one more of them. Returns whether it has all: then the record is finished."""
        self.unacknowledged -= 1
        return not self.unacknowledged

    def give_up(self) -> bool:
        """The broker does not take one of them. Returns whether it is the first: the record fails only once."""
        is_first = not self.is_over
        self.is_over = True
        return is_first


@dataclass(eq=False, slots=True)
class Send:
    """A record to produce: an output, a dead letter (has ``failure``), or a retry record (has ``delay`` too).

    ``failure`` of a retry record can be ``Delayed``, which is no failure: the record only waits.

    The consumed record is finished when the broker has acknowledged this one, and all others in ``outputs``.
    """

    tried: Attempt
    outgoing: ProducerRecord
    failure: Failed | Delayed | None = None
    delay: float | None = None
    outputs: OutputSet | None = None  # None if this is the only record to produce for the consumed record

    @property
    def output_count(self) -> int:
        """How many outputs the consumed record has."""
        return 1 if self.outputs is None else self.outputs.count


def sends_of(tried: Attempt, outputs: Sequence[ProducerRecord]) -> list[Send]:
    """What to produce for the outputs of one record."""
    if len(outputs) == 1:
        return [Send(tried, outputs[0])]
    together = OutputSet(len(outputs), len(outputs))
    return [Send(tried, each, outputs=together) for each in outputs]


def by_record(sends: Iterable[Send]) -> Iterator[Sequence[Send]]:
    """Group what is produced by consumed record. The outputs of a record follow each other."""
    together: list[Send] = []
    for send in sends:
        together.append(send)
        if len(together) == send.output_count:
            yield together
            together = []


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
