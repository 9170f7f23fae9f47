"""The events of limits and breakers that change while an app runs, and of keys that hold up others."""

from dataclasses import dataclass

from penstock.core.reports.event_bases import HandlerEvent, PartitionEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcurrencyChanged(HandlerEvent):
    """So many records (or batches) of this member run at once from now on.

    With ``concurrency="auto"``, and after a command. At most two a second, and none for small changes. On Spark the
    member is a task.
    """

    member: str
    concurrency: int
    before: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerOpened(HandlerEvent):
    """The breaker pauses the handler: records fail and none succeeds. ``reason`` is the last failure.

    Nothing is dead-lettered. Every ``seconds`` one record is tried. On Spark the member is a task.
    """

    member: str
    reason: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerClosed(HandlerEvent):
    """A record has succeeded, so the breaker lets the handler continue after ``seconds``."""

    member: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetMapFull(PartitionEvent):
    """Too many records ahead of the commit point are finished: the offset map of a commit has no room for more.

    So many ``lanes`` wait until the record at ``offset``, the commit point, is finished. Once for each such wait.
    """

    offset: int
    lanes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimited(HandlerEvent):
    """Records of this member wait for their ``rate``: up to so many could have begun in the last half second.

    Once, until ``rate_eased``.
    """

    member: str
    rate: str
    waiting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RateEased(HandlerEvent):
    """No record of this member has waited for its rate for 5 seconds; before that, some did for ``seconds``."""

    member: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HotKey(PartitionEvent):
    """For ``seconds``, this key has had most of the waiting records (``waiting`` of ``of``) while workers were idle.

    Records of one key run one at a time. Either the key has very many records, or they are slow, or one is being
    retried.
    """

    key: str | None
    epoch: int
    waiting: int
    of: int
    seconds: float
