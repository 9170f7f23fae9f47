"""Workers: what runs handlers. Threads for ``def``, one event loop for ``async def``, processes where asked for."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from queue import SimpleQueue
from typing import Any, Protocol

from penstock.app import Handler, Reading, attempts, attempts_async, batch_attempts, batch_attempts_async
from penstock.core.lease import Lease
from penstock.core.outcome import DONE, Failed, Outcome
from penstock.engine.messages import Inbox, Trouble, Worked
from penstock.engine.processes import Child, check_importable
from penstock.engine.work import Work
from penstock.errors import HandlerError, PenstockError

_CLOSE_SECONDS = 1.0

Attend = Callable[[Work], None]
"""What a thread does with a work: attempt its records, and note their outcomes in its runs."""


def queued_ahead(concurrency: int) -> int:
    """How many works may wait for a worker, so that one that finishes need not wait for the dispatcher."""
    return max(2, concurrency // 4)


class Workers(Protocol):
    """No more than the handler's ``concurrency`` work at once; what is submitted beyond that waits its turn."""

    def submit(self, works: Sequence[Work]) -> None: ...
    def close(self) -> None: ...


def make_workers(handler: Handler, inbox: Inbox, reading: Reading, lease: Lease) -> Workers:
    if handler.signature.is_async:
        return EventLoopWorkers(handler, inbox, reading, lease)
    if handler.workers == "process":
        check_importable(handler)
    return ThreadWorkers(handler, inbox, reading, lease)


class ThreadWorkers:
    """Threads that are started as work comes in, up to the concurrency; each with a process of its own where asked."""

    def __init__(self, handler: Handler, inbox: Inbox, reading: Reading, lease: Lease) -> None:
        self._handler = handler
        self._inbox = inbox
        self._reading = reading
        self._lease = lease
        self._works: SimpleQueue[Work | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._children: list[Child] = []
        self._idle = threading.Semaphore(0)

    def submit(self, works: Sequence[Work]) -> None:
        for work in works:
            if len(self._threads) < self._handler.concurrency and not self._idle.acquire(blocking=False):
                name = f"{self._handler.name}-worker-{len(self._threads) + 1}"
                # A handler that never returns must not keep the process alive past its drain timeout.
                self._threads.append(threading.Thread(target=self._serve, name=name, daemon=True))
                self._threads[-1].start()
            self._works.put(work)

    def close(self) -> None:
        for _ in self._threads:
            self._works.put(None)
        if self._children:
            # A thread can be left behind with its handler; a process would go on, so it is ended.
            deadline = time.monotonic() + _CLOSE_SECONDS
            for thread in self._threads:
                thread.join(max(0.0, deadline - time.monotonic()))
            for child in self._children:
                child.kill()

    def _serve(self) -> None:
        try:
            self._attend()
        except BaseException as error:  # noqa: BLE001 - gone unheard, it would leave its work undone for ever
            self._inbox.put(_breakdown(self._handler, error))

    def _attend(self) -> None:
        handler, reading, lease = self._handler, self._reading, self._lease
        if handler.workers == "process":
            child = Child(handler, reading)
            self._children.append(child)
            self._work(
                attend_in_batches(child, reading, lease) if handler.batch else attend_one_by_one(child, reading, lease)
            )
            child.close()
        elif handler.batch:
            self._work(attend_in_batches(batch_attempts(handler, reading), reading, lease))
        else:
            self._work(attend_one_by_one(attempts(handler, reading), reading, lease))

    def _work(self, attend: Attend) -> None:
        while (work := self._works.get()) is not None:
            attend(work)
            # Idle first: whoever acts on the report may find this thread free.
            if len(self._threads) < self._handler.concurrency:
                self._idle.release()
            self._inbox.put(Worked(work))


def _breakdown(handler: Handler, error: BaseException) -> Trouble:
    """What no outcome stands for: the app stops, and commits nothing of it."""
    if not isinstance(error, PenstockError):
        reason = f"{type(error).__name__}: {error}"
        error = HandlerError(f"A worker of handler {handler.name} broke down: {reason}.", hint="")
    return Trouble(error, fatal=True)


def attend_one_by_one(attempt: Callable[[Any, int], Outcome], reading: Reading, lease: Lease) -> Attend:
    offset_of, clock = reading.offset_of, time.monotonic

    def attend(work: Work) -> None:
        for run in work.runs():
            epoch, note = run.epoch, run.outcomes.append
            failures = epoch.failures
            for record in work.records(run):
                if not epoch.dispatching or clock() > lease.until:
                    break
                # Hardly ever has anything failed before, so hardly ever is there something to look up.
                outcome = attempt(record, failures.get(offset_of(record), 0) + 1 if failures else 1)
                note(outcome)
                if outcome is not DONE and isinstance(outcome, Failed) and work.stops_at(run, outcome):
                    break

    return attend


def attend_in_batches(
    attempt: Callable[[list[Any], list[int]], list[Outcome]], reading: Reading, lease: Lease
) -> Attend:
    def attend(work: Work) -> None:
        records, numbers = work.as_batch(reading.offset_of, lease)
        work.note_batch(attempt(records, numbers) if records else [])

    return attend


class EventLoopWorkers:
    """One event loop in one thread; each work is a task on it."""

    def __init__(self, handler: Handler, inbox: Inbox, reading: Reading, lease: Lease) -> None:
        self._handler = handler
        self._inbox = inbox
        self._attend = attend_async(handler, reading, lease)
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
            try:
                await self._attend(work)
            except asyncio.CancelledError:  # the loop is being closed
                raise
            except BaseException as error:
                self._inbox.put(_breakdown(self._handler, error))
                raise
            self._inbox.put(Worked(work))


def attend_async(handler: Handler, reading: Reading, lease: Lease) -> Callable[[Work], Awaitable[None]]:
    offset_of, clock = reading.offset_of, time.monotonic
    if handler.batch:
        attempt_batch = batch_attempts_async(handler, reading)

        async def attend_in_batches(work: Work) -> None:
            records, numbers = work.as_batch(offset_of, lease)
            work.note_batch(await attempt_batch(records, numbers) if records else [])

        return attend_in_batches
    attempt = attempts_async(handler, reading)

    async def attend_one_by_one(work: Work) -> None:
        for run in work.runs():
            epoch = run.epoch
            for record in work.records(run):
                if not epoch.dispatching or clock() > lease.until:
                    break
                outcome = await attempt(record, epoch.attempt_at(offset_of(record)) if epoch.failures else 1)
                run.outcomes.append(outcome)
                if isinstance(outcome, Failed) and work.stops_at(run, outcome):
                    break

    return attend_one_by_one
