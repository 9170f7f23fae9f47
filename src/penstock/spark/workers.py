"""Workers of a task. What they run on outlives it: threads and the event loop belong to the Python worker process.

So what a handler keeps for a thread or a loop, such as a connection, serves all tasks of the process. They are made
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

from penstock.app import Handler, RunWork, async_work_runner, end_task, is_ended, work_runner, worker_error
from penstock.app.work import Work
from penstock.core.progress.lease import FOREVER
from penstock.core.scheduling.bundle_size import queued_ahead
from penstock.spark.columns import ROWS

# How long a cancelled attempt has to clean up.
_CANCEL_SECONDS = 1.0


class Workers(Protocol):
    """No more than ``width`` works are worked on at once; what is submitted beyond that waits its turn."""

    width: int
    ahead: int
    """How many may wait, so that a worker that ends something need not wait for the task's own thread."""

    def submit(self, works: Sequence[Work]) -> None: ...

    def wait(self, seconds: float | None) -> list[Work]:
        """The works that ended since the last time; waits for one up to so many seconds, or as long as it takes."""

    def close(self, seconds: float) -> None:
        """Wait so long for what is in progress; nothing of this task is begun after it."""


def make_workers(handler: Handler, sleep: Callable[[float], None]) -> Workers:
    if handler.signature.is_async:
        return LoopWorkers(handler)
    # With one record at a time nobody else has anything to do meanwhile.
    if handler.concurrency == 1 or handler.order == "partition":
        return InlineWorker(handler, sleep)
    return ThreadWorkers(handler)


class InlineWorker:
    """The task's own thread, which is spared the handing over."""

    width = 1
    ahead = 0

    def __init__(self, handler: Handler, sleep: Callable[[float], None]) -> None:
        self._run_work = work_runner(handler, ROWS, FOREVER)
        self._sleep = sleep
        self._ended: list[Work] = []

    def submit(self, works: Sequence[Work]) -> None:
        for work in works:
            self._run_work(work)
        self._ended.extend(works)

    def wait(self, seconds: float | None) -> list[Work]:
        ended, self._ended = self._ended, []
        if not ended and seconds:
            self._sleep(seconds)
        return ended

    def close(self, seconds: float) -> None:
        """Nothing is ever in progress here when somebody else can ask."""


class _Ended:
    """What workers elsewhere are through with, and how they ended themselves."""

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
        if isinstance(ended, BaseException):
            # What no outcome stands for: the task fails, and with it the batch.
            raise worker_error(self._handler.name, ended) from ended
        return ended


class ThreadWorkers:
    """For ``def``: threads that the task has borrowed from the process, as many as it has works, up to the width."""

    def __init__(self, handler: Handler) -> None:
        self.width = handler.concurrency
        self.ahead = queued_ahead(self.width)
        self._run_work: RunWork = work_runner(handler, ROWS, FOREVER)
        self._works: SimpleQueue[Work | None] = SimpleQueue()
        self._ended = _Ended(handler)
        self._borrowed = 0
        self._idle = threading.Semaphore(0)
        self._given_back = threading.Semaphore(0)
        self.wait = self._ended.wait

    def submit(self, works: Sequence[Work]) -> None:
        for work in works:
            if self._borrowed < self.width and not self._idle.acquire(blocking=False):
                self._borrowed += 1
                _threads().lend(self._serve, then=self._given_back.release)
            self._works.put(work)

    def _serve(self) -> None:
        try:
            while (work := self._works.get()) is not None:
                self._run_work(work)
                # Idle first: whoever acts on the report may find this thread free.
                self._idle.release()
                self._ended.put(work)
        except BaseException as error:  # noqa: BLE001 - gone unheard, it would leave its work undone for ever
            self._ended.put(error)

    def close(self, seconds: float) -> None:
        # Also what waits in front of the signs to go is gone through quickly: its epoch dispatches no more.
        for _ in range(self._borrowed):
            self._works.put(None)
        deadline = time.monotonic() + seconds
        for _ in range(self._borrowed):
            if not self._given_back.acquire(timeout=max(0.0, deadline - time.monotonic())):
                return


class LoopWorkers:
    """For ``async def``: tasks on the one event loop of the process."""

    def __init__(self, handler: Handler) -> None:
        self.width = handler.concurrency
        self.ahead = queued_ahead(self.width)
        self._run_work = async_work_runner(handler, ROWS, FOREVER)
        self._ended = _Ended(handler)
        self._waiting: deque[Work] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._serving = 0  # tasks that will look for work again; one that will not may still be among the tasks
        self._loop = _event_loop()
        self.wait = self._ended.wait

    def submit(self, works: Sequence[Work]) -> None:
        if works:
            self._loop.call_soon_threadsafe(self._start, works)

    def _start(self, works: Sequence[Work]) -> None:
        self._waiting.extend(works)
        for _ in range(min(len(self._waiting), self.width - self._serving)):
            self._serving += 1
            # The loop itself holds tasks only weakly.
            task = self._loop.create_task(self._serve())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _serve(self) -> None:
        try:
            while self._waiting:
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
    """The threads of this process: those that nobody has borrowed wait for the next task."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[tuple[Callable[[], None], Callable[[], None]]] = SimpleQueue()
        self._idle = threading.Semaphore(0)

    def lend(self, job: Callable[[], None], *, then: Callable[[], None]) -> None:
        """Run this, which must not raise, on a thread that is free or new; and that when the thread is free again."""
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
    """It has a thread of its own, so that handlers go on while the task reads its input or waits for its output."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=_run_for_ever, args=(loop,), name="penstock-event-loop", daemon=True).start()
    return loop


def _run_for_ever(loop: asyncio.AbstractEventLoop) -> None:
    while True:
        # asyncio lets these out of a task that a handler started, besides handing them to whoever awaits it.
        with suppress(SystemExit, KeyboardInterrupt):
            loop.run_forever()


def _forget() -> None:
    _threads.cache_clear()
    _event_loop.cache_clear()


# Whoever forks gets a child without these threads, and must not take them for its own.
os.register_at_fork(after_in_child=_forget)
