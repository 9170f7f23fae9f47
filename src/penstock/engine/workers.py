"""Workers: what runs handlers. Threads for ``def``, one event loop for ``async def``."""

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from queue import SimpleQueue
from typing import Protocol

from penstock.app import Handler, attempts, attempts_async
from penstock.core.outcome import Failed, Outcome
from penstock.core.record import Record
from penstock.engine.messages import Inbox, Worked
from penstock.engine.work import Work


def queued_ahead(concurrency: int) -> int:
    """How many works may wait for a worker, so that one that finishes need not wait for the dispatcher."""
    return max(2, concurrency // 4)


class Workers(Protocol):
    """No more than the handler's ``concurrency`` work at once; what is submitted beyond that waits its turn."""

    def submit(self, works: Sequence[Work]) -> None: ...
    def close(self) -> None: ...


def make_workers(handler: Handler, inbox: Inbox) -> Workers:
    if handler.signature.is_async:
        return EventLoopWorkers(handler, inbox)
    return ThreadWorkers(handler, inbox)


class ThreadWorkers:
    """Threads that are started as work comes in, up to the concurrency."""

    def __init__(self, handler: Handler, inbox: Inbox) -> None:
        self._handler = handler
        self._inbox = inbox
        self._works: SimpleQueue[Work | None] = SimpleQueue()
        self._attempt = attempts(handler)
        self._threads = 0
        self._idle = threading.Semaphore(0)

    def submit(self, works: Sequence[Work]) -> None:
        for work in works:
            if self._threads < self._handler.concurrency and not self._idle.acquire(blocking=False):
                self._threads += 1
                name = f"{self._handler.name}-worker-{self._threads}"
                # A handler that never returns must not keep the process alive past its drain timeout.
                threading.Thread(target=self._work, name=name, daemon=True).start()
            self._works.put(work)

    def close(self) -> None:
        for _ in range(self._threads):
            self._works.put(None)

    def _work(self) -> None:
        attempt = self._attempt
        while (work := self._works.get()) is not None:
            for run in work.runs():
                epoch, note = run.epoch, run.outcomes.append
                for record in run.records:
                    if not epoch.dispatching:
                        break
                    outcome = attempt(record)
                    note(outcome)
                    if isinstance(outcome, Failed) and work.stops_at(run, outcome):
                        break
            # Idle first: whoever acts on the report may find this thread free.
            if self._threads < self._handler.concurrency:
                self._idle.release()
            self._inbox.put(Worked(work))


class EventLoopWorkers:
    """One event loop in one thread; each run is a task on it."""

    def __init__(self, handler: Handler, inbox: Inbox) -> None:
        self._handler = handler
        self._inbox = inbox
        self._attempt: Callable[[Record], Awaitable[Outcome]] = attempts_async(handler)
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: deque[Work] = deque()
        self._thread = threading.Thread(target=self._serve, name=f"{handler.name}-event-loop", daemon=True)
        self._thread.start()

    def submit(self, works: Sequence[Work]) -> None:
        self._loop.call_soon_threadsafe(self._start, works)

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

    def _start(self, works: Sequence[Work]) -> None:
        self._waiting.extend(works)
        while self._waiting and len(self._tasks) < self._handler.concurrency:
            # The loop itself holds tasks only weakly.
            task = self._loop.create_task(self._work())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _work(self) -> None:
        while self._waiting:
            work = self._waiting.popleft()
            for run in work.runs():
                for record in run.records:
                    if not run.epoch.dispatching:
                        break
                    outcome = await self._attempt(record)
                    run.outcomes.append(outcome)
                    if isinstance(outcome, Failed) and work.stops_at(run, outcome):
                        break
            self._inbox.put(Worked(work))
