"""Finds ``def`` handlers on threads that run longer than their ``timeout``: they cannot be ended, only reported."""

from collections.abc import Collection
from dataclasses import dataclass

from penstock.app import Handler
from penstock.app.attempts import time_limit
from penstock.app.attempts.traceback_text import stack_of
from penstock.app.attempts.work import Work
from penstock.core.scheduling.lanes import AnyRecord, Epoch


@dataclass(frozen=True, slots=True)
class OverdueRecord:
    """A record whose handler has run for ``seconds``; ``stack`` shows where its thread is. Of a batch, the first."""

    epoch: Epoch
    record: AnyRecord
    seconds: float
    stack: str


class OverdueDetector:
    """The dispatcher calls ``look`` every 0.1 s. Each attempt is reported once."""

    def __init__(self, handler: Handler) -> None:
        on_threads = not handler.signature.is_async and handler.workers != "process"
        self._limit = handler.timeout if on_threads else None
        self._reported: dict[Work, int] = {}

    def look(self, works: Collection[Work], now: float) -> list[OverdueRecord]:
        """Return the attempts that have been overdue since the last call."""
        if self._limit is None:
            return []
        self._reported = {work: attempted for work, attempted in self._reported.items() if work in works}
        found = []
        for work in works:
            current = work.current(now)
            if current is None or current[2] < self._limit or self._reported.get(work) == work.attempted:
                continue
            self._reported[work] = work.attempted
            run, record, seconds = current
            found.append(OverdueRecord(run.epoch, record, seconds, stack_of(work.thread, inside=time_limit.__file__)))
        return found
