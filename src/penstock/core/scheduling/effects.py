"""What the dispatcher's rules take and return: data, for the edges to carry out."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.core.failures.outcome import Failed, Outcome, ProducerRecord
from penstock.core.failures.retry_topic import RetryInfo
from penstock.core.scheduling.lanes import AnyRecord, Epoch, Run


@dataclass(eq=False, slots=True)
class Attempt:
    """A record and the attempt at it that is meant."""

    epoch: Epoch
    record: AnyRecord
    offset: int
    attempt: int


@dataclass(eq=False, slots=True)
class Send:
    """An output, a dead letter (then with its failure), or what goes to a retry topic (then with its delay too).

    Its record is finished once the broker has it.
    """

    tried: Attempt
    outgoing: ProducerRecord
    failure: Failed | None = None
    delay: float | None = None


@dataclass(eq=False, slots=True)
class Returned:
    """A record of a retry topic, and what its headers say."""

    record: AnyRecord
    said: RetryInfo


@dataclass(frozen=True, slots=True)
class Pause:
    """Stop fetching a partition, and go back to ``rewind_to`` where some of it was given back."""

    epoch: Epoch
    rewind_to: int | None


@dataclass(slots=True)
class Effects:
    """What follows from outcomes, for the dispatcher to carry out. What is skipped is finished too."""

    finished: list[tuple[Epoch, list[AnyRecord]]] = field(default_factory=list)
    again: dict[tuple[Epoch, int], int] = field(default_factory=dict)
    """Of what is finished, the attempt that did it, where that was not the first."""
    skipped: list[tuple[Attempt, str]] = field(default_factory=list)
    sends: list[Send] = field(default_factory=list)
    retried: list[tuple[Attempt, Failed, float]] = field(default_factory=list)
    blocked: list[tuple[Attempt, Failed, float]] = field(default_factory=list)
    """What waits for something that is away; its next attempt has the same number."""
    halted: tuple[Attempt, Failed] | None = None
    """What the app must stop at: it has nowhere to go, or the breaker is open."""


Result = tuple[Run, Sequence[Outcome], bool]
"""A run, the outcomes of its next records, and whether the worker does no more of it."""
