"""The events: all that Penstock reports, as a closed list. Logs, ``--events`` and tests read nothing else."""

from dataclasses import dataclass
from typing import ClassVar

from penstock.core.reports.command_events import Commanded
from penstock.core.reports.event_bases import (
    AttemptEvent,
    CountsEvent,
    Event,
    FetchEvent,
    HandlerEvent,
    PartitionEvent,
    RecordEvent,
)
from penstock.core.reports.limit_events import (
    BreakerClosed,
    BreakerOpened,
    ConcurrencyChanged,
    HotKey,
    OffsetMapFull,
    RateEased,
    RateLimited,
)
from penstock.core.reports.rebalance import Rebalance

__all__ = ["BreakerClosed", "BreakerOpened", "Commanded", "ConcurrencyChanged", "CountsEvent", "Event", "HotKey"]
__all__ += ["OffsetMapFull", "RateEased", "RateLimited"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Started(Event):
    """An engine starts to consume for one handler; ``lag`` is the lag of its group.

    In a backfill, ``lag`` is the number of offsets in its range, and the group's committed offsets do not change.
    ``order`` and ``concurrency`` are the options of a handler; ``expectations`` are those of a pipeline. With ``auto``,
    ``concurrency`` is the largest number that it may find.
    """

    engine: str
    group: str
    handler: str
    topics: tuple[str, ...]
    lag: int
    order: str = ""
    concurrency: int = 0
    auto: bool = False
    backfill: bool = False
    expectations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Routed(HandlerEvent):
    """Several handlers share a member, which is called ``handler``: each record goes to the first that takes it.

    ``routes`` are their names in this order. ``otherwise`` says what happens to a record that none of them takes; None
    if the last one takes every record.
    """

    routes: tuple[str, ...]
    otherwise: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining(HandlerEvent):
    """Because of other members, a member has waited ``seconds`` for its first assignment or some of its partitions."""

    seconds: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOpened(HandlerEvent):
    """A pipeline opened a sink; ``guarantee`` says what happens to the rows of a batch or backfill that is repeated."""

    sink: str
    guarantee: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeRead(Event):
    """A backfill reads these offsets of a partition: from ``start`` up to, not including, ``end``."""

    handler: str
    topic: str
    partition: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicCreated(Event):
    """Penstock created an output, dead-letter or retry topic that did not exist."""

    topic: str
    partitions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Assigned(PartitionEvent):
    """A new epoch: this member owns the partition and fetches from ``offset`` (None: Kafka chooses it)."""

    epoch: int
    offset: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Revoked(PartitionEvent):
    """The epoch ended after a last commit; ``unfinished`` records will be redelivered to the next owner.

    With at-most-once, only those that are not committed: an ``Error`` says how many are lost.
    """

    epoch: int
    unfinished: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost(PartitionEvent):
    """The epoch ended without a chance to commit."""

    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalanced(Event):
    """This member finished a rebalance: its phases, its reason, and the partitions that changed owners."""

    group: str
    member: str
    rebalance: Rebalance


@dataclass(frozen=True, slots=True, kw_only=True)
class StartOverridden(PartitionEvent):
    """``from_`` set a partition to ``offset`` (None: its start) and overrode the ``committed`` offset of the group."""

    offset: int | None
    committed: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetOutOfRange(PartitionEvent):
    """The log has ``low`` to ``high`` but not ``offset``: retention deleted it, or the topic was recreated.

    Fetching continues at ``moved_to``, according to the option ``start``; this skips ``skipped`` offsets. If ``from_``
    or ``start`` names an offset above ``high``, fetching continues at ``high``: nothing is replayed.
    """

    offset: int
    low: int
    high: int
    moved_to: int
    skipped: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatched(AttemptEvent):
    """A record was handed to a worker."""

    per_record: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Stalled(AttemptEvent):
    """A record has been in progress for ``seconds``: its handler may be stuck, and its lane waits."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Overdue(AttemptEvent):
    """A ``def`` handler runs longer than its ``timeout``. A thread cannot be ended: its lane waits until it returns.

    ``stack`` shows where the thread is after ``seconds``.
    """

    seconds: float
    stack: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished(AttemptEvent):
    """The handler has finished a record, and its output, if any, is in Kafka."""

    per_record: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped(RecordEvent):
    """The handler raised Skip."""

    per_record: ClassVar[bool] = True

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Expired(RecordEvent):
    """The record is finished without a call of its handler: its producer set ``expires``, and that time is over."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicate(RecordEvent):
    """The record is finished without a call of its handler: with ``dedupe``, its id was handled before."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Retried(RecordEvent):
    """An attempt failed; the next one starts in ``seconds``."""

    attempt: int
    reason: str
    seconds: float
    traceback: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitingDependency(RecordEvent):
    """An attempt could not be made because a dependency, such as the schema registry, is unavailable.

    The record blocks its lane and is tried again after ``seconds``, without a limit. If many records are blocked, this
    event reports one of them, about once a second.
    """

    reason: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Delayed(RecordEvent):
    """The handler raised Later, or a header of the record names a later time: the record waits for ``seconds``.

    This is no failure and no attempt. ``to`` is the retry topic where the record waits, None in memory.
    """

    reason: str
    seconds: float
    to: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Postponed(RecordEvent):
    """An attempt failed, and the broker has accepted the record in a retry topic, where it waits for ``seconds``."""

    attempt: int
    to: str
    reason: str
    seconds: float
    traceback: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLettered(RecordEvent):
    """The broker has accepted the dead letter of this record."""

    attempt: int
    to: str
    reason: str
    traceback: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed(PartitionEvent):
    """The broker has accepted a commit of this offset."""

    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitFailed(PartitionEvent):
    """The broker did not accept a commit; the next commit includes it."""

    offset: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused(FetchEvent):
    """This partition is fetched no further: it has too many records in flight, waits, or was paused by a command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed(FetchEvent):
    """Fetching of this partition resumes: enough of its records are finished, or a record is due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progressed(CountsEvent):
    """The counts of this run so far: about once a second while they change; in pipelines after each batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteProgressed(CountsEvent):
    """The counts of one of several handlers that share a member. They are part of the counts of the member."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFinished(HandlerEvent):
    """Spark finished slices of a handler, or a micro-batch of a pipeline: the outputs are in Kafka.

    ``lag`` is the lag after that, None if Kafka did not report it. ``next_size`` is the maximum size of a pipeline's
    next batch.
    """

    batch: int
    read: int
    written: int
    dead_lettered: int
    skipped: int
    seconds: float
    lag: int | None = None
    next_size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectationFailed(HandlerEvent):
    """In a micro-batch of a pipeline, ``rows`` rows did not meet this expectation of a source."""

    expectation: str
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMaintained(HandlerEvent):
    """The small files of a pipeline's table were compacted, and files that are no longer needed were deleted."""

    sink: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LateRows(HandlerEvent):
    """In a micro-batch of a pipeline, Spark dropped ``rows`` rows because they were below the watermark."""

    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lagging(FetchEvent):
    """The progress on one partition on Spark: all below ``offset`` is finished, ``lag`` remain."""

    offset: int
    lag: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Restarting(HandlerEvent):
    """A slice of a handler, or the query of a pipeline, failed on Spark. It starts again in ``seconds``.

    ``attempt`` is the number of failures in a row without a finished slice or batch; 0 if the query did not fail.
    """

    attempt: int
    reason: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsDropped(Event):
    """Listeners of the app were too slow, and their queue was full: they did not get ``dropped`` events."""

    app: str
    dropped: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Error(Event):
    """An error; ``fatal`` if the engine stops because of it.

    ``traceback`` is that of the handler, if the engine stops because the handler raised an exception.
    """

    group: str
    reason: str
    fatal: bool
    traceback: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopping(HandlerEvent):
    """The engine dispatches no new records and waits for those in flight."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped(CountsEvent):
    """The engine has committed and closed everything; the counts are those of this run."""

    seconds: float
