"""Merges the events of one handler's members: listeners see one start, one count and one stop per handler."""

import threading
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from penstock.core.reports import events
from penstock.core.reports.record_counts import Counts

Emit = Callable[[events.Event], None]


class EventMerger:
    """``of(number)`` returns the function to which that member emits its events."""

    def __init__(self, emit: Emit, members: int) -> None:
        self._emit = emit
        self._members = members
        self._started = False
        self._stopping = False
        self._counts: dict[tuple[int, str], Counts] = {}  # by member and handler
        self._seconds: list[float] = []
        self._lock = threading.Lock()

    def of(self, number: int) -> Emit:
        return self._emit if self._members == 1 else lambda event: self._receive(number, event)

    def _receive(self, number: int, event: events.Event) -> None:
        with self._lock:
            merged = self._merge(number, event)
        if merged is not None:
            self._emit(merged)

    def _merge(self, number: int, event: events.Event) -> events.Event | None:
        match event:
            case events.Started():
                first, self._started = not self._started, True
                return event if first else None
            case events.Progressed() | events.RouteProgressed():
                return replace(event, **self._total(number, event))
            case events.Stopping():
                first, self._stopping = not self._stopping, True
                return event if first else None
            case events.Stopped(seconds=seconds):
                self._seconds.append(seconds)
                total = self._total(number, event)
                last = len(self._seconds) == self._members
                return replace(event, seconds=max(self._seconds), **total) if last else None
        return event

    def _total(self, number: int, event: events.CountsEvent) -> dict[str, Any]:
        self._counts[number, event.handler] = Counts(event.read, event.written, event.dead_lettered, event.skipped)
        return asdict(sum((each for (_, name), each in self._counts.items() if name == event.handler), Counts()))
