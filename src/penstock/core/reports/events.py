"""Everything that Penstock reports, as a closed list.

Logs, the ``--events`` file, progress bars and tests are listeners to these and read nothing else.
"""

import json
import re
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from penstock.core.reports.rebalance import Rebalance
from penstock.core.settings import redacted_values
from penstock.core.text.foreign_text import printable_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One fact. ``per_record`` events come once for each record and are made only where somebody listens."""

    per_record: ClassVar[bool] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Started(Event):
    """An engine begins to consume for one handler, with so many records between its group and the topics' ends.

    In a backfill ``lag`` is the length of its range, and the group's offsets do not move.
    """

    engine: str
    group: str
    handler: str
    topics: tuple[str, ...]
    lag: int
    backfill: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining(Event):
    """A member has waited so long for its first assignment, or for partitions of it, because of other members."""

    group: str
    handler: str
    seconds: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOpened(Event):
    """A pipeline will write its rows there, and this is what becomes of a batch, or a backfill, that is repeated."""

    group: str
    handler: str
    sink: str
    guarantee: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeRead(Event):
    """A backfill reads exactly these records of a partition: from ``start`` up to and without ``end``."""

    handler: str
    topic: str
    partition: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicCreated(Event):
    """An output, dead-letter or retry topic was missing and now exists."""

    topic: str
    partitions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Assigned(Event):
    """A new epoch: this member owns the partition, from ``offset`` on (None: where Kafka starts it)."""

    group: str
    member: str
    topic: str
    partition: int
    epoch: int
    offset: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Revoked(Event):
    """The epoch ended in good order; ``unfinished`` records will be delivered again to the next owner."""

    group: str
    member: str
    topic: str
    partition: int
    epoch: int
    unfinished: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost(Event):
    """The epoch ended without a chance to commit."""

    group: str
    member: str
    topic: str
    partition: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalanced(Event):
    """This member has been through a rebalance, with its phases, its reason and what changed hands."""

    group: str
    member: str
    rebalance: Rebalance


@dataclass(frozen=True, slots=True, kw_only=True)
class Forced(Event):
    """``from_`` sent a partition to ``offset`` (None: to its start), whatever the group had ``committed``."""

    group: str
    member: str
    topic: str
    partition: int
    offset: int | None
    committed: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetOutOfRange(Event):
    """The log, from ``low`` to ``high``, does not have ``offset``: retention was quicker, or the topic was made anew.

    Fetching went on at ``moved_to``, as ``start`` says; ``skipped`` offsets were passed over by that. Where ``from_``
    or ``start`` names an offset above ``high``, it goes on at ``high``: nothing is replayed.
    """

    group: str
    member: str
    topic: str
    partition: int
    offset: int
    low: int
    high: int
    moved_to: int
    skipped: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatched(Event):
    """A record was handed to a worker."""

    per_record: ClassVar[bool] = True

    group: str
    member: str
    topic: str
    partition: int
    offset: int
    key: str | None
    epoch: int
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stalled(Event):
    """A record has been in progress for so long that its handler may be stuck; its lane waits."""

    group: str
    member: str
    topic: str
    partition: int
    offset: int
    key: str | None
    epoch: int
    attempt: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HotKey(Event):
    """For a while, this key has had most of the records that wait, and workers have had nothing to do.

    So ``waiting`` of ``of`` records go one at a time: it has that many, or they are slow, or one is tried again.
    """

    group: str
    member: str
    topic: str
    partition: int
    key: str | None
    epoch: int
    waiting: int
    of: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished(Event):
    """The handler is through with a record, and its output, if any, is in Kafka."""

    per_record: ClassVar[bool] = True

    group: str
    member: str
    topic: str
    partition: int
    offset: int
    key: str | None
    epoch: int
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped(Event):
    """The handler raised Skip."""

    per_record: ClassVar[bool] = True

    group: str
    member: str
    topic: str
    partition: int
    offset: int
    epoch: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Retried(Event):
    """An attempt failed, and the next one is ``seconds`` away."""

    group: str
    member: str
    topic: str
    partition: int
    offset: int
    epoch: int
    attempt: int
    reason: str
    seconds: float
    traceback: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked(Event):
    """An attempt could not be made, as something that it needs, such as the schema registry, is away.

    The record holds its lane and is tried again after so many seconds, as often as it takes. Where many records are
    blocked, one of them is told about once a second.
    """

    group: str
    member: str
    topic: str
    partition: int
    offset: int
    epoch: int
    reason: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Postponed(Event):
    """An attempt failed, and the broker has the record in a retry topic, where it waits for so many seconds."""

    group: str
    member: str
    topic: str
    partition: int
    offset: int
    epoch: int
    attempt: int
    to: str
    reason: str
    seconds: float
    traceback: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLettered(Event):
    """The broker has acknowledged the dead letter of this record."""

    group: str
    member: str
    topic: str
    partition: int
    offset: int
    epoch: int
    attempt: int
    to: str
    reason: str
    traceback: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed(Event):
    """The broker has accepted this as the group's offset."""

    group: str
    member: str
    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitFailed(Event):
    """The broker did not accept a commit; it is tried again with the next one."""

    group: str
    member: str
    topic: str
    partition: int
    offset: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused(Event):
    """Enough of this partition is in flight, or its next record is not due yet: fetching waits."""

    group: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed(Event):
    """The handler has caught up enough, or a record is due: fetching goes on."""

    group: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Progressed(Event):
    """The counts so far in this run: about once a second while they change, and on Spark after each batch."""

    group: str
    handler: str
    read: int
    written: int
    dead_lettered: int
    skipped: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFinished(Event):
    """Spark finished a micro-batch: its outputs are in Kafka and its end is in the checkpoint.

    ``lag`` is how many offsets were left then, None where Kafka did not say; ``next_size`` is how many a batch may take
    from now on, where that follows how long batches take.
    """

    group: str
    handler: str
    batch: int
    read: int
    written: int
    dead_lettered: int
    skipped: int
    seconds: float
    lag: int | None = None
    next_size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lagging(Event):
    """How far one partition is after a batch on Spark: finished below ``offset``, ``lag`` offsets before its end."""

    group: str
    topic: str
    partition: int
    offset: int
    lag: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Restarting(Event):
    """A query on Spark ended before its time, and starts again in so many seconds, from what is finished.

    ``attempt`` is how many times in a row it has failed without finishing a batch; 0 where it did not fail at all.
    """

    group: str
    handler: str
    attempt: int
    reason: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Error(Event):
    """Something went wrong; ``fatal`` where the engine stops because of it.

    ``traceback`` is there where a handler raised what it stops for.
    """

    group: str
    reason: str
    fatal: bool
    traceback: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopping(Event):
    """No new records are dispatched; what is in flight is awaited."""

    group: str
    handler: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped(Event):
    """All is committed and closed; the counts are of this run."""

    group: str
    handler: str
    read: int
    written: int
    dead_lettered: int
    skipped: int
    seconds: float


_WORD_START = re.compile(r"(?<!^)(?=[A-Z])")


def name(event: Event) -> str:
    """The event's name as logs and files show it: ``DeadLettered`` is ``dead_lettered``."""
    return _WORD_START.sub("_", type(event).__name__).lower()


def fields(event: Event, ts: float) -> dict[str, Any]:
    return {"event": name(event), "ts": round(ts, 6), **asdict(event)}


def to_json(event: Event, ts: float) -> str:
    """One line of JSON, without secrets; ``ts`` is in seconds since 1970."""
    return printable_json(json.dumps(redacted_values(fields(event, ts)), separators=(",", ":"), ensure_ascii=False))
