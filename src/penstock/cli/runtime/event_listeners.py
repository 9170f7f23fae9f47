"""Listeners to events: the ``--events`` file and the lines on the terminal."""

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

from penstock.cli.console.screen import Screen, block
from penstock.cli.runtime.error_counts import ErrorCounts
from penstock.core.reports import events
from penstock.core.reports.event_json import to_json
from penstock.core.text.plurals import at_most, counted
from penstock.errors import ConfigError

Listener = Callable[[events.Event], None]
_OfRecord = (
    events.Retried
    | events.Postponed
    | events.AwaitingDependency
    | events.Delayed
    | events.DeadLettered
    | events.Overdue
)

# So many dead letters and retries are shown one by one. Further ones are only counted.
_SHOWN_ONE_BY_ONE = 5
_INDENT = "    "


class Fanout:
    """Passes each event to every listener. A lock makes listeners run one at a time, for events of any thread."""

    def __init__(self, listeners: Sequence[Listener]) -> None:
        self._listeners = listeners
        self._lock = threading.Lock()

    def __call__(self, event: events.Event) -> None:
        with self._lock:
            for listener in self._listeners:
                listener(event)


class EventsFile:
    """Writes every event as a line of JSON, at once, so that a killed process leaves its events too."""

    def __init__(self, path: Path) -> None:
        try:
            self._file: TextIO = path.open("a", buffering=1, encoding="utf-8")
        except OSError as error:
            raise ConfigError(
                f"The events file {path} cannot be written: {error.strerror}.", hint="Name another file with --events."
            ) from error

    def __call__(self, event: events.Event) -> None:
        self._file.write(to_json(event, time.time()) + "\n")

    def close(self) -> None:
        self._file.close()


class Totals:
    """Collects the counts that engines report when they stop."""

    def __init__(self) -> None:
        self.stopped: list[events.Stopped] = []

    def __call__(self, event: events.Event) -> None:
        if isinstance(event, events.Stopped):
            self.stopped.append(event)


class TerminalListener:
    """Prints what happens, in few lines, for a person."""

    def __init__(self, console: Screen, *, dry_run: bool = False) -> None:
        self._console = console
        self._dry_run = dry_run
        self._dead_letters = 0
        self._retries = 0
        self._waits = 0
        self._blocked = 0
        self._lost_rows = 0
        self._errors = ErrorCounts()
        self._routes: dict[str, tuple[str, ...]] = {}  # of each handler that is several
        self._route_counts: dict[str, events.RouteProgressed] = {}

    def __call__(self, event: events.Event) -> None:
        match event:
            case events.Started() | events.Routed() | events.RouteProgressed():
                self._tell_start(event)
            case events.SinkOpened(handler=handler, sink=sink, guarantee=guarantee):
                self._say(f"{handler}: writing to {sink}, {guarantee}")
            case events.RangeRead(handler=handler, topic=topic, partition=partition, start=start, end=end):
                count = at_most(end - start, "record")
                self._say(f"{handler}: {topic}[{partition}] from {start:,} up to {end:,}: {count}")
            case events.TopicCreated(topic=topic, partitions=partitions):
                self._say(f"created topic {topic} with {counted(partitions, 'partition')}")
            case events.Retried() | events.Postponed():
                self._retries, at = self._retries + 1, self._at(event)
                self._show_traceback(event)
                self._sample(self._retries, f"{at}: retry in {event.seconds:g} s: {event.reason}", "retries")
            case events.AwaitingDependency() | events.Delayed():
                self._waits, at = self._waits + 1, self._at(event)
                self._sample(self._waits, f"{at}: waiting {event.seconds:.1f} s: {event.reason}", "waits")
            case events.DeadLettered():
                self._dead_letters += 1
                self._show_traceback(event)
                self._sample(
                    self._dead_letters, f"{self._at(event)}: dead letter to {event.to}: {event.reason}", "dead letters"
                )
            case events.Stopping(handler=handler, reason=reason):
                self._say(f"{handler}: stopping ({reason}): finishing the records in progress")
            case events.Stopped():
                self._tell_end(event)
            case _:
                self._tell_trouble(event)

    def _tell_start(self, event: events.Started | events.Routed | events.RouteProgressed) -> None:
        match event:
            case events.Started():
                self._say(_start(event))
            case events.Routed():
                self._routes[event.handler] = event.routes
                self._say(_routing(event))
            case events.RouteProgressed():
                self._route_counts[event.handler] = event

    def _at(self, event: _OfRecord) -> str:
        """The record, and the handler that ran where several share a member."""
        is_route = any(event.handler in routes for routes in self._routes.values())
        return f"{event.handler}: {_tp(event)}" if is_route else _tp(event)

    def _tell_end(self, event: events.Stopped) -> None:
        self._say(f"{event.handler}: stopped: {_counts(event, dry_run=self._dry_run)} in {event.seconds:.1f} s")
        for name in self._routes.get(event.handler, ()):
            if name in self._route_counts:
                self._say(f"{_INDENT}{name}: {_counts(self._route_counts[name], dry_run=self._dry_run)}")
        for line in self._errors.summary():
            self._say(line, style="yellow")
        self._errors = ErrorCounts()

    def _tell_trouble(self, event: events.Event) -> None:
        """Print what may need attention."""
        match event:
            case events.CommitFailed() | events.Joining() | events.Commanded():
                self._say(_in_a_line(event), style="yellow")
            case events.Lost(topic=topic, partition=partition):
                self._say(f"{topic}[{partition}]: lost; its next owner gets its unfinished records", style="yellow")
            case (
                events.HotKey()
                | events.Overdue()
                | events.BreakerOpened()
                | events.BreakerClosed()
                | events.OffsetMapFull()
            ):
                self._tell_slow(event)
            case events.OffsetOutOfRange():
                self._say(f"{_tp(event)}: {_why_moved(event)}", style="yellow")
            case events.Restarting():
                self._say(f"{event.handler} restarts in {event.seconds:g} s: {event.reason}", style="yellow")
            case events.EventsDropped(dropped=dropped):
                lost = counted(dropped, "event")
                self._say(f"listeners of the app are too slow: they did not get {lost}", style="yellow")
            case events.ExpectationFailed() | events.LateRows():
                self._lost_rows += 1
                self._sample(self._lost_rows, _lost_rows(event), "rows of that kind")
            case events.Error():
                self._tell_error(event)

    def _tell_error(self, event: events.Error) -> None:
        if event.fatal:  # the last line of the run prints its message
            self._show_traceback(event)
        else:
            self._say(event.reason, style="yellow")

    def _tell_slow(
        self,
        event: events.HotKey | events.Overdue | events.BreakerOpened | events.BreakerClosed | events.OffsetMapFull,
    ) -> None:
        """Print what makes records wait."""
        match event:
            case events.OffsetMapFull(offset=offset):
                self._say(
                    f"{_tp(event)}: records far ahead wait until offset {offset:,} is finished: the offset map is full",
                    style="yellow",
                )
            case events.Overdue(seconds=seconds, stack=stack):
                at = self._at(event)
                self._say(
                    f"{at}: the handler has run for {seconds:.1f} s, longer than its timeout, and is here:",
                    style="yellow",
                )
                self._console.print(block(stack, indent=_INDENT), style="yellow", soft_wrap=True)
            case events.BreakerOpened(handler=handler, reason=reason, seconds=seconds):
                self._say(f"{handler}: paused, trying one record every {seconds:g} s: {reason}", style="yellow")
            case events.BreakerClosed(handler=handler, seconds=seconds):
                self._say(f"{handler}: continues after {seconds:.0f} s: a record has succeeded", style="yellow")
            case events.HotKey(topic=topic, partition=partition, key=key, waiting=waiting, of=of):
                self._say(
                    f"{topic}[{partition}]: {waiting:,} of {of:,} waiting records have the key {key!r}. They run one "
                    f"at a time while other workers are idle. See `penstock topics keys {topic}`.",
                    style="yellow",
                )

    def _show_traceback(self, event: events.Retried | events.Postponed | events.DeadLettered | events.Error) -> None:
        """Print a traceback in full the first time, before the line about the record. Then only count it."""
        if event.traceback and self._errors.is_new(event.traceback):
            self._console.print(block(event.traceback, indent=_INDENT), style="yellow", soft_wrap=True)

    def _sample(self, count: int, line: str, what: str) -> None:
        if count <= _SHOWN_ONE_BY_ONE:
            self._say(line, style="yellow")
        elif count == _SHOWN_ONE_BY_ONE + 1:
            self._say(f"further {what} are only counted; --events FILE records all of them", style="yellow")

    def _say(self, line: str, style: str = "dim") -> None:
        self._console.print(line, style=style, markup=False, soft_wrap=True)


def _lost_rows(event: events.ExpectationFailed | events.LateRows) -> str:
    rows = counted(event.rows, "row")
    if isinstance(event, events.LateRows):
        return f"{event.handler}: Spark dropped {rows} below the watermark"
    return f"{event.handler}: {rows} did not meet the expectation {event.expectation!r}"


def _start(event: events.Started) -> str:
    topics, lag = ", ".join(event.topics), at_most(event.lag, "record")
    if event.backfill:
        return f"{event.handler}: backfill of {lag} of {topics}; no offsets are committed"
    where = f"consuming {topics} as group {event.group} on the {event.engine} engine"
    return f"{event.handler}: {where}, {lag} behind{_parallelism(event)}"


_IN_ORDER = {"partition": "in order for each partition", "key": "in order for each key", "none": "in any order"}


def _parallelism(event: events.Started) -> str:
    """How many records run at once, and in which order; nothing for a pipeline."""
    if not event.concurrency:
        return ""
    per_task = " in each task" if event.engine == "spark" else ""
    up_to = "up to " if event.auto else ""
    return f"; {up_to}{event.concurrency} at once{per_task}, {_IN_ORDER[event.order]}"


_UNROUTED = {
    "dead_letter": "a record that none of them takes becomes a dead letter",
    "stop": "a record that none of them takes stops the app",
    "skip": "a record that none of them takes is skipped",
    None: "the last one takes every record that is left",
}


def _routing(event: events.Routed) -> str:
    if len(event.routes) == 1:
        rest = _UNROUTED[event.otherwise].replace("none of them takes", "it does not take")
        return f"{event.handler}: takes the records of its condition; {rest}"
    return f"{event.handler}: tries {', '.join(event.routes)} in this order; {_UNROUTED[event.otherwise]}"


def _counts(event: events.CountsEvent, *, dry_run: bool) -> str:
    outcomes = (
        f"{counted(event.written, 'output')} and {counted(event.dead_lettered, 'dead letter')} not written"
        if dry_run
        else f"{event.written:,} written, {event.dead_lettered:,} dead-lettered"
    )
    return f"{event.read:,} read, {outcomes}, {event.skipped:,} skipped"


def _in_a_line(event: events.CommitFailed | events.Joining | events.Commanded) -> str:
    match event:
        case events.CommitFailed():
            return f"{_tp(event)}: the broker refused a commit: {event.reason}"
        case events.Joining():
            return event.reason
        case _:
            return _commanded(event)


def _commanded(event: events.Commanded) -> str:
    who = f"by {event.by} with {event.via}"
    if event.action == "set":
        changes = ", ".join(f"{name}={value}" for name, value in event.changes.items())
        return f"{event.handler}: {changes} set {who}"
    what = f" {', '.join(event.partitions)}" if event.partitions else ""
    return f"{event.handler}:{what} {event.action}d {who}"


def _tp(event: _OfRecord | events.CommitFailed | events.OffsetMapFull | events.OffsetOutOfRange) -> str:
    return f"{event.topic}[{event.partition}]@{event.offset}"


def _why_moved(event: events.OffsetOutOfRange) -> str:
    if event.offset < event.low:
        why = f"retention has deleted this record; the log begins at {event.low}"
    elif event.offset > event.high:
        why = f"the log ends at {event.high}: the topic was recreated, or this offset is not written yet"
    else:
        why = "the topic was recreated, and this offset belongs to the old topic"
    skipped = "1 offset is" if event.skipped == 1 else f"{event.skipped:,} offsets are"
    return f"{why}. Consuming continues at {event.moved_to}; {skipped} skipped."
