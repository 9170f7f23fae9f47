"""The base classes of events: which fields the events of a partition, an attempt and a count have in common."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Base of all events. ``per_record`` events occur once per record and are built only if a listener wants them."""

    per_record: ClassVar[bool] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchEvent(Event):
    """Base of the events about fetching a partition, on either engine."""

    group: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionEvent(Event):
    """Base of the events of one partition of one member."""

    group: str
    member: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordEvent(PartitionEvent):
    """Base of the events of one record. ``handler`` is the handler that ran; with routes, the route that ran."""

    handler: str = ""
    offset: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEvent(RecordEvent):
    """Base of the events of one attempt to handle one record."""

    key: str | None
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerEvent(Event):
    """Base of the events of one handler, or of one output of a pipeline."""

    group: str
    handler: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CountsEvent(HandlerEvent):
    """Base of the events that count what a handler did in this run so far."""

    read: int
    written: int
    dead_lettered: int
    skipped: int
