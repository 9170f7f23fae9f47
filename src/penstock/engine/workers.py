"""Workers: what runs handlers. Threads for ``def``, one event loop for ``async def``."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from queue import SimpleQueue
from typing import Protocol

from penstock.app import Handler, attempts, attempts_async
from penstock.core.dispatch import Run
from penstock.core.outcome import Failed, Outcome
from penstock.core.record import Record
from penstock.engine.messages import Inbox, Report

# A worker in a long run reports this often, so that commits do not wait for the run's end.
_REPORT_SECONDS = 0.1


class Workers(Protocol):
    def submit(self, run: Run) -> None: ...
    def close(self) -> None: ...


def make_workers(handler: Handler, inbox: Inbox) -> Workers:
    if handler.signature.is_async:
        return EventLoopWorkers(handler, inbox)
    return ThreadWorkers(handler, inbox)


class _Progress:
    """Collects the outcomes of one run and reports them in chunks."""

    def __init__(self, run: Run, inbox: Inbox, *, has_dead_letter: bool) -> None:
        self._run = run
        self._inbox = inbox
        self._has_dead_letter = has_dead_letter
        self._outcomes: list[Outcome] = []
        self._next_report = time.monotonic() + _REPORT_SECONDS
        # The dispatcher takes records off the run as they are reported, so the worker keeps its own list.
        self.records = tuple(run.records)

    def may_go_on(self) -> bool:
        return self._run.epoch.dispatching

    def add(self, outcome: Outcome) -> bool:
        """Note an outcome; False where the lane must wait for what the dispatcher makes of it."""
        self._outcomes.append(outcome)
        # A record that goes straight to the dead letters holds nobody up.
        if isinstance(outcome, Failed) and not (outcome.final and self._has_dead_letter):
            return False
        if time.monotonic() >= self._next_report:
            self.report(last=False)
        return True

    def report(self, *, last: bool) -> None:
        self._inbox.put(Report(self._run, self._outcomes, last))
        self._outcomes = []
        self._next_report = time.monotonic() + _REPORT_SECONDS


class ThreadWorkers:
    """Threads that are started as runs come in, up to the concurrency, which the dispatcher keeps to."""

    def __init__(self, handler: Handler, inbox: Inbox) -> None:
        self._handler = handler
        self._inbox = inbox
        self._runs: SimpleQueue[Run | None] = SimpleQueue()
        self._attempt = attempts(handler)
        self._threads = 0
        self._idle = threading.Semaphore(0)

    def submit(self, run: Run) -> None:
        if not self._idle.acquire(blocking=False):
            self._threads += 1
            name = f"{self._handler.name}-worker-{self._threads}"
            # A handler that never returns must not keep the process alive past its drain timeout.
            threading.Thread(target=self._work, name=name, daemon=True).start()
        self._runs.put(run)

    def close(self) -> None:
        for _ in range(self._threads):
            self._runs.put(None)

    def _work(self) -> None:
        while (run := self._runs.get()) is not None:
            progress = _Progress(run, self._inbox, has_dead_letter=self._handler.dead_letter is not None)
            for record in progress.records:
                if not progress.may_go_on() or not progress.add(self._attempt(record)):
                    break
            # Idle first: whoever acts on the report may find this thread free.
            self._idle.release()
            progress.report(last=True)


class EventLoopWorkers:
    """One event loop in one thread; each run is a task on it."""

    def __init__(self, handler: Handler, inbox: Inbox) -> None:
        self._handler = handler
        self._inbox = inbox
        self._attempt: Callable[[Record], Awaitable[Outcome]] = attempts_async(handler)
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._serve, name=f"{handler.name}-event-loop", daemon=True)
        self._thread.start()

    def submit(self, run: Run) -> None:
        self._loop.call_soon_threadsafe(self._start, run)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=1)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        for task in self._tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*self._tasks, return_exceptions=True))
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    def _start(self, run: Run) -> None:
        # The loop itself holds tasks only weakly.
        task = self._loop.create_task(self._work(run))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _work(self, run: Run) -> None:
        progress = _Progress(run, self._inbox, has_dead_letter=self._handler.dead_letter is not None)
        for record in progress.records:
            if not progress.may_go_on() or not progress.add(await self._attempt(record)):
                break
        progress.report(last=True)
