"""What the dispatcher's rules take and return: data, for the edges to carry out."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.core.lanes import Epoch, Run
from penstock.core.outcome import Failed, Outcome, Outgoing
from penstock.core.record import Record


@dataclass(eq=False, slots=True)
class Send:
    """An output or a dead letter (then with its failure); its record is finished once the broker has it."""

    epoch: Epoch
    record: Record
    outgoing: Outgoing
    failure: Failed | None = None


@dataclass(frozen=True, slots=True)
class Pause:
    """Stop fetching a partition, and go back to ``rewind_to`` where some of it was given back."""

    epoch: Epoch
    rewind_to: int | None


@dataclass(slots=True)
class Consequences:
    """What follows from outcomes, for the dispatcher to carry out."""

    finished: list[tuple[Epoch, list[Record]]] = field(default_factory=list)
    skipped: list[tuple[Record, str]] = field(default_factory=list)
    sends: list[Send] = field(default_factory=list)
    retried: list[tuple[Record, Failed, float]] = field(default_factory=list)
    halted: tuple[Record, Failed] | None = None


Result = tuple[Run, Sequence[Outcome], bool]
"""A run, the outcomes of its next records, and whether the worker does no more of it."""
