"""The events of limits and breakers that change while an app runs."""

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
