"""What the handlers of one run have done, collected from the run's events: counts, errors, hot keys, concurrency."""

from collections import deque
from dataclasses import asdict, dataclass, field
from typing import Any

from penstock.core.failures.dead_letter_headers import MAX_REASON_BYTES, bounded
from penstock.core.reports.events import (
    BreakerClosed,
    BreakerOpened,
    ConcurrencyChanged,
    DeadLettered,
    Error,
    Event,
    HotKey,
    Overdue,
    Postponed,
    Progressed,
    Retried,
    Stalled,
    Started,
    Stopped,
    Stopping,
)
from penstock.core.reports.record_counts import Counts

_POINT_SECONDS = 1.0
_KEPT_POINTS = 120
_KEPT_ERRORS = 40
_KEPT_NOTES = 20
# An error may quote a record: megabytes, or half of a character, which is no text for a file.
_TRACEBACK_CHARACTERS = 6_000

_Failure = Retried | Postponed | DeadLettered


@dataclass
class ErrorGroup:
    """Failures with one traceback. ``last`` is the place of the latest record: topic, partition, offset."""

    reason: str
    traceback: str
    first_at: float
    last_at: float = 0.0
    count: int = 0
    retried: int = 0
    postponed: int = 0
    dead: int = 0
    fatal: bool = False
    last: tuple[str, int, int] | None = None
    to: str | None = None


@dataclass
class HandlerActivity:
    """One handler. Times are in seconds since 1970; a point is the time, and the counts of the run until then."""

    group: str
    name: str
    topics: tuple[str, ...]
    order: str
    concurrency: int
    is_auto: bool
    since: float
    state: str = "running"
    counts: Counts = field(default_factory=Counts)
    points: deque[tuple[float, int, int, int]] = field(default_factory=lambda: deque(maxlen=_KEPT_POINTS))
    found: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=_KEPT_POINTS))
    hot_keys: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=_KEPT_NOTES))
    stuck: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=_KEPT_NOTES))
    breaker: str | None = None
    errors: dict[tuple[str, ...], ErrorGroup] = field(default_factory=dict)


class RunActivity:
    """Collects events; ``as_json`` is the picture of the run. The caller makes sure that one thread is in here."""

    def __init__(self) -> None:
        self._handlers: dict[tuple[str, str], HandlerActivity] = {}

    def note(self, event: Event, *, now: float) -> None:
        if isinstance(event, Started):
            self._handlers[event.group, event.handler] = HandlerActivity(
                event.group, event.handler, event.topics, event.order, event.concurrency, event.auto, now
            )
            return
        group = getattr(event, "group", "")
        its = self._handlers.get((group, getattr(event, "handler", "")))
        # With routes, an event names the route; its member has the name of the first handler of the group.
        for each in [its] if its else [each for each in self._handlers.values() if each.group == group][:1]:
            _note(each, event, now)

    def as_json(self) -> list[dict[str, Any]]:
        return [
            {
                **{name: value for name, value in vars(each).items() if name not in {"counts", "errors"}},
                **asdict(each.counts),
                "points": list(each.points),
                "found": list(each.found),
                "hot_keys": list(each.hot_keys),
                "stuck": list(each.stuck),
                "errors": [asdict(error) for error in sorted(each.errors.values(), key=lambda error: -error.last_at)],
            }
            for each in self._handlers.values()
        ]


def _note(its: HandlerActivity, event: Event, now: float) -> None:
    match event:
        case Progressed() | Stopped():
            its.counts = Counts(event.read, event.written, event.dead_lettered, event.skipped)
            if not its.points or now - its.points[-1][0] >= _POINT_SECONDS:
                its.points.append((round(now, 3), event.read, event.written, event.dead_lettered))
            if isinstance(event, Stopped) and its.state != "failed":
                its.state = "stopped"
        case Stopping():
            its.state = "stopping"
        case Retried() | Postponed() | DeadLettered():
            _note_failure(its, event, now)
        case Error():
            _error(its, event.reason, event.traceback, now).fatal |= event.fatal
            its.state = "failed" if event.fatal else its.state
        case ConcurrencyChanged():
            its.found.append((round(now, 3), event.concurrency))
        case BreakerOpened() | BreakerClosed():
            its.breaker = bounded(event.reason, MAX_REASON_BYTES) if isinstance(event, BreakerOpened) else None
        case _:
            _note_slow(its, event, now)


def _note_slow(its: HandlerActivity, event: Event, now: float) -> None:
    match event:
        case HotKey():
            its.hot_keys.append(_placed(event, now) | {"waiting": event.waiting, "of": event.of})
        case Stalled() | Overdue():
            stack = event.stack if isinstance(event, Overdue) else ""
            its.stuck.append(_placed(event, now) | {"offset": event.offset, "seconds": event.seconds, "stack": stack})


def _placed(event: HotKey | Stalled | Overdue, now: float) -> dict[str, Any]:
    return {"at": round(now, 3), "topic": event.topic, "partition": event.partition, "key": event.key}


def _note_failure(its: HandlerActivity, event: _Failure, now: float) -> None:
    error = _error(its, event.reason, event.traceback, now)
    error.last = event.topic, event.partition, event.offset
    match event:
        case Retried():
            error.retried += 1
        case Postponed():
            error.postponed += 1
        case DeadLettered():
            error.dead += 1
            error.to = event.to


def _error(its: HandlerActivity, reason: str, traceback: str, now: float) -> ErrorGroup:
    """Return the group of this failure. Messages often name the record, so only the frames of a traceback count."""
    key = (reason.partition(":")[0], *_frames(traceback))
    known = its.errors.get(key)
    if known is None:
        if len(its.errors) >= _KEPT_ERRORS:
            del its.errors[min(its.errors, key=lambda each: its.errors[each].last_at)]
        known = its.errors[key] = ErrorGroup("", "", round(now, 3))
    known.count += 1
    known.last_at, known.reason = round(now, 3), bounded(reason, MAX_REASON_BYTES)
    known.traceback = traceback[-_TRACEBACK_CHARACTERS:].encode(errors="replace").decode()
    return known


def _frames(traceback: str) -> tuple[str, ...]:
    return tuple(line for line in traceback.splitlines() if line.startswith("  File "))
