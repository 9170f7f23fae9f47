"""Workers of a task. Their threads and event loop belong to the Python worker process, and outlive the task.

So what a handler keeps for a thread or a loop, such as a connection, serves all tasks of the process. Threads start
when a task first needs them, which is after Spark has forked the process: threads do not survive a fork.
"""

import asyncio
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from queue import Empty, SimpleQueue
from typing import Protocol

from penstock.app import (
    Handler,
    RunWork,
    WriteValues,
    async_work_runner,
    end_task,
    is_ended,
    plain_runner,
    work_runner,
    worker_error,
)
from penstock.app.attempts.work import Work
from penstock.app.attempts.work_slots import WorkSlots
from penstock.core.progress.lease import FOREVER
from penstock.errors import CallbackError
from penstock.kafka import MESSAGES
from penstock.spark.tasks.task_resources import TaskResources

# How long a cancelled attempt has to clean up.
_CANCEL_SECONDS = 1.0


class TaskWorkers(Protocol):
    """Runs at most ``width`` works at once; further works wait."""

    width: int

    def submit(self, works: Sequence[Work]) -> None: ...

    def resize(self, concurrency: int) -> None:
        """Run at most so many works at once from now on, up to ``width``. Those in progress are not interrupted."""

    def wait(self, seconds: float | None) -> list[Work]:
        """Return the works that ended since the last call. Waits for one up to ``seconds``; None is for ever."""

    def close(self, seconds: float) -> None:
        """Wait up to ``seconds`` for works in progress. No work of this task starts afterwards."""


def make_workers(
    handler: Handler,
    sleep: Callable[[float], None],
    write: WriteValues,
    resources: TaskResources | None = None,
) -> TaskWorkers:
    """Make the workers of a task, and the resources that they need. Raises what those raise.

    A worker on the task's own thread writes plain outputs itself, by ``write``.
    """
    resources = resources or TaskResources(handler)
    if handler.signature.is_async:
        return LoopWorkers(resources.on_loop(_event_loop()), handler.largest_concurrency)
    # One record at a time: another thread would have nothing to do.
    if handler.concurrency == 1 or handler.order == "partition":
        with resources.on_this_thread() as complete:
            return InlineWorker(complete, sleep, write)
    return ThreadTaskWorkers(handler, resources)


class InlineWorker:
    """Runs works on the task's own thread, which saves passing them to another."""

    width = 1

    def __init__(self, handler: Handler, sleep: Callable[[float], None], write: WriteValues) -> None:
        self._run_work = plain_runner(handler, MESSAGES, write)
        self._sleep = sleep
        self._ended: list[Work] = []

    def submit(self, works: Sequence[Work]) -> None:
        for work in works:
            self._run_work(work)
        self._ended.extend(works)

    def resize(self, concurrency: int) -> None:
        """Do nothing: there is one worker."""

    def wait(self, seconds: float | None) -> list[Work]:
        ended, self._ended = self._ended, []
        if not ended and seconds:
            self._sleep(seconds)
        return ended

    def close(self, seconds: float) -> None:
        """Do nothing: ``submit`` returns only after its works have ended."""


class _Ended:
    """The queue of ended works, and of errors that ended a worker."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._queue: SimpleQueue[Work | BaseException] = SimpleQueue()
        self.put = self._queue.put

    def wait(self, seconds: float | None) -> list[Work]:
        ended: list[Work] = []
        try:
            ended.append(self._checked(self._queue.get(timeout=seconds) if seconds != 0 else self._queue.get_nowait()))
            while True:
                ended.append(self._checked(self._queue.get_nowait()))
        except Empty:
            return ended

    def _checked(self, ended: Work | BaseException) -> Work:
        if isinstance(ended, CallbackError):
            raise ended
        if isinstance(ended, BaseException):
            # An error that is no outcome of a record: the task fails, and with it the batch.
            raise worker_error(self._handler, ended) from ended
        return ended


class ThreadTaskWorkers:
    """For ``def``: threads of the process that the task borrows, one for each work, up to ``width``."""

    def __init__(self, handler: Handler, resources: TaskResources) -> None:
        self.width = handler.largest_concurrency
        self._slots = WorkSlots(self.width)
        self._resources = resources
        # One for all threads, unless each has resources of its own.
        self._run_work: RunWork | None = None
        if not handler.wiring.of_worker:
            with resources.on_this_thread() as complete:
                self._run_work = work_runner(complete, MESSAGES, FOREVER)
        self._works: SimpleQueue[Work | None] = SimpleQueue()
        self._ended = _Ended(handler)
        self._borrowed = 0
        self._given_back = threading.Semaphore(0)
        self.wait = self._ended.wait

    def submit(self, works: Sequence[Work]) -> None:
        self._start(self._slots.add(works))

    def resize(self, concurrency: int) -> None:
        self._start(self._slots.resize(concurrency))

    def _start(self, works: Sequence[Work]) -> None:
        for work in works:
            self._works.put(work)
        while self._borrowed < self._slots.running:
            self._borrowed += 1
            _threads().lend(self._serve, then=self._given_back.release)

    def _serve(self) -> None:
        try:
            run_work = self._run_work
            if run_work is None:
                with self._resources.on_this_thread() as complete:
                    run_work = work_runner(complete, MESSAGES, FOREVER)
            while (work := self._works.get()) is not None:
                while work is not None:
                    run_work(work)
                    # Free first: the task may react to the ended work at once, and should find this thread free.
                    done, work = work, self._slots.next()
                    self._ended.put(done)
        except BaseException as error:  # noqa: BLE001 - otherwise the task would wait for this work for ever
            self._ended.put(error)

    def close(self, seconds: float) -> None:
        # Works before these Nones end at once, because the task has stopped their epochs.
        for _ in range(self._borrowed):
            self._works.put(None)
        deadline = time.monotonic() + seconds
        for _ in range(self._borrowed):
            if not self._given_back.acquire(timeout=max(0.0, deadline - time.monotonic())):
                return


class LoopWorkers:
    """For ``async def``: tasks on the one event loop of the process."""

    def __init__(self, handler: Handler, width: int) -> None:
        self.width = self._concurrency = width
        self._run_work = async_work_runner(handler, MESSAGES, FOREVER)
        self._ended = _Ended(handler)
        self._waiting: deque[Work] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._serving = 0  # tasks that will take more work; a task that ends is still in _tasks for a moment
        self._loop = _event_loop()
        self.wait = self._ended.wait

    def submit(self, works: Sequence[Work]) -> None:
        if works:
            self._loop.call_soon_threadsafe(self._start, works)

    def resize(self, concurrency: int) -> None:
        self._loop.call_soon_threadsafe(self._resize, concurrency)

    def _resize(self, concurrency: int) -> None:
        self._concurrency = concurrency
        self._start(())

    def _start(self, works: Sequence[Work]) -> None:
        self._waiting.extend(works)
        for _ in range(min(len(self._waiting), self._concurrency - self._serving)):
            self._serving += 1
            # The loop itself holds tasks only weakly.
            task = self._loop.create_task(self._serve())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _serve(self) -> None:
        try:
            while self._waiting and self._serving <= self._concurrency:
                work = self._waiting.popleft()
                try:
                    await self._run_work(work)
                except BaseException as error:
                    if is_ended(asyncio.current_task()):
                        raise
                    self._ended.put(error)
                else:
                    self._ended.put(work)
        finally:
            self._serving -= 1

    def close(self, seconds: float) -> None:
        closing = asyncio.run_coroutine_threadsafe(self._finish(seconds), self._loop)
        # A handler that blocks the loop blocks this too.
        with suppress(TimeoutError):
            closing.result(seconds + 2 * _CANCEL_SECONDS)

    async def _finish(self, seconds: float) -> None:
        self._waiting.clear()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=seconds)
            for task in late:
                end_task(task)
            if late:
                await asyncio.wait(late, timeout=_CANCEL_SECONDS)


class _Threads:
    """The threads of this process. Free ones wait for the next task."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[tuple[Callable[[], None], Callable[[], None]]] = SimpleQueue()
        self._idle = threading.Semaphore(0)

    def lend(self, job: Callable[[], None], *, then: Callable[[], None]) -> None:
        """Run ``job``, which must not raise, on a free or new thread. Call ``then`` when the thread is free again."""
        if not self._idle.acquire(blocking=False):
            # A handler that never returns must not keep the process alive.
            threading.Thread(target=self._serve, name="penstock-worker", daemon=True).start()
        self._jobs.put((job, then))

    def _serve(self) -> None:
        while True:
            job, then = self._jobs.get()
            job()
            self._idle.release()
            then()


@cache
def _threads() -> _Threads:
    return _Threads()


@cache
def _event_loop() -> asyncio.AbstractEventLoop:
    """Return the event loop. It has its own thread, so handlers run while the task reads input or writes output."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=_run_for_ever, args=(loop,), name="penstock-event-loop", daemon=True).start()
    return loop


def _run_for_ever(loop: asyncio.AbstractEventLoop) -> None:
    while True:
        # If a task of a handler raises these, asyncio also raises them from run_forever.
        with suppress(SystemExit, KeyboardInterrupt):
            loop.run_forever()


def _forget() -> None:
    _threads.cache_clear()
    _event_loop.cache_clear()


# A forked child does not have these threads, so it must start its own.
os.register_at_fork(after_in_child=_forget)
