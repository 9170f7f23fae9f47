"""What the handlers and pipelines of one run on Spark do, collected from the run's events."""

from collections import deque
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from penstock.core.failures.dead_letter_headers import MAX_REASON_BYTES, bounded
from penstock.core.reports.events import (
    BatchFinished,
    Error,
    Event,
    ExpectationFailed,
    Lagging,
    LateRows,
    Progressed,
    Restarting,
    Started,
    Stopped,
    Stopping,
)
from penstock.core.reports.record_counts import Counts

_KEPT_BATCHES = 60
_KEPT_PARTITIONS = 5_000

WorkState = Literal["running", "restarting", "stopping", "stopped", "failed"]


@dataclass(frozen=True)
class SparkSessionFacts:
    """The session that a run uses; ``ui`` is the address of Spark's own UI, None if it is off."""

    master: str
    application: str
    ui: str | None


@dataclass(frozen=True)
class FinishedBatch:
    """Slices of a handler that finished together, or a micro-batch of a pipeline."""

    at: float
    read: int
    written: int
    dead_lettered: int
    skipped: int
    seconds: float


@dataclass
class SparkWork:
    """One handler, or one output of a pipeline. Times are in seconds since 1970."""

    group: str
    name: str
    is_handler: bool
    topics: tuple[str, ...]
    since: float
    lag: int | None
    state: WorkState = "running"
    counts: Counts = field(default_factory=Counts)
    batches: deque[FinishedBatch] = field(default_factory=lambda: deque(maxlen=_KEPT_BATCHES))
    next_size: int | None = None
    restarts: int = 0
    restarted_at: float | None = None
    problem: str | None = None
    failed_rows: dict[str, int] = field(default_factory=dict)
    late_rows: int = 0
    partitions: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By ``topic/number``: the position and the lag."""


class SparkActivity:
    """Collects events; ``as_json`` is what a file about the run contains."""

    def __init__(self) -> None:
        self._works: dict[tuple[str, str], SparkWork] = {}

    def note(self, event: Event, *, now: float) -> bool:
        """Take an event in; return whether something changed."""
        if isinstance(event, Started):
            self._works[event.group, event.handler] = SparkWork(
                event.group, event.handler, bool(event.order), event.topics, now, event.lag
            )
            return True
        if isinstance(event, Error | Lagging):
            found = [work for work in self._works.values() if work.group == event.group]
            for work in found:
                _note_of_group(work, event)
            return bool(found)
        its = self._works.get((getattr(event, "group", ""), getattr(event, "handler", "")))
        return its is not None and _note(its, event, now)

    def as_json(self) -> list[dict[str, Any]]:
        return [{**asdict(work), "batches": [asdict(each) for each in work.batches]} for work in self._works.values()]


def _note_of_group(work: SparkWork, event: Error | Lagging) -> None:
    if isinstance(event, Error):
        work.problem = bounded(event.reason, MAX_REASON_BYTES)
        work.state = "failed" if event.fatal else work.state
    elif event.topic in work.topics and len(work.partitions) < _KEPT_PARTITIONS:
        work.partitions[f"{event.topic}/{event.partition}"] = event.offset, event.lag


def _note(work: SparkWork, event: Event, now: float) -> bool:
    match event:
        case BatchFinished():
            _note_batch(work, event, now)
        case Restarting():
            work.restarts += 1
            work.state, work.restarted_at, work.problem = "restarting", now, bounded(event.reason, MAX_REASON_BYTES)
        case Progressed() | Stopped():
            work.counts = Counts(event.read, event.written, event.dead_lettered, event.skipped)
            if isinstance(event, Stopped) and work.state != "failed":
                work.state = "stopped"
        case Stopping():
            work.state = "stopping"
        case ExpectationFailed():
            work.failed_rows[event.expectation] = work.failed_rows.get(event.expectation, 0) + event.rows
        case LateRows():
            work.late_rows += event.rows
        case _:
            return False
    return True


def _note_batch(work: SparkWork, event: BatchFinished, now: float) -> None:
    work.batches.append(
        FinishedBatch(now, event.read, event.written, event.dead_lettered, event.skipped, event.seconds)
    )
    work.lag = event.lag if event.lag is not None else work.lag
    work.next_size = event.next_size
    if work.state == "restarting":
        work.state = "running"
