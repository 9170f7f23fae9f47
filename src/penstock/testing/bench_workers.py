"""Workers without threads: handlers run when the bench turns."""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Protocol

from penstock.app import Handler, RecordAdapter, async_work_runner, end_task, work_runner
from penstock.core.progress.lease import FOREVER
from penstock.core.scheduling.bundle_size import BundleSize
from penstock.core.scheduling.work import Work
from penstock.engine.dispatch.thread_messages import Inbox, Worked
from penstock.testing.hand_driven_loop import HandDrivenLoop


class BenchWorkers(Protocol):
    """What the dispatcher submits to, and the bench drives."""

    def submit(self, works: Sequence[Work]) -> None: ...
    def close(self) -> None: ...

    def work(self) -> bool:
        """Do what can be done now; whether there was anything."""


class OneByOne(BundleSize):
    """Each record travels alone, so that none waits behind another that it merely travelled with."""

    @property
    def size(self) -> int:
        return 1


def make_workers(handler: Handler, inbox: Inbox, adapter: RecordAdapter, loop: HandDrivenLoop) -> BenchWorkers:
    if handler.signature.is_async:
        return LoopWorkers(handler, inbox, adapter, loop)
    return InlineWorkers(handler, inbox, adapter)


class InlineWorkers:
    """For ``def``, processes or not: one after the other, each to its end, in the order they were dispatched."""

    def __init__(self, handler: Handler, inbox: Inbox, adapter: RecordAdapter) -> None:
        self._inbox = inbox
        self._works: deque[Work] = deque()
        self._run_work = work_runner(handler, adapter, FOREVER)

    def submit(self, works: Sequence[Work]) -> None:
        self._works.extend(works)

    def close(self) -> None:
        self._works.clear()

    def work(self) -> bool:
        if not self._works:
            return False
        # One at a time: what it leads to comes before the next, so that lanes and members take turns.
        work = self._works.popleft()
        self._run_work(work)
        self._inbox.put(Worked(work))
        return True


class LoopWorkers:
    """For ``async def``: up to the handler's concurrency side by side, each as far as it gets without waiting."""

    def __init__(self, handler: Handler, inbox: Inbox, adapter: RecordAdapter, loop: HandDrivenLoop) -> None:
        self._concurrency = handler.concurrency
        self._inbox = inbox
        self._loop = loop
        self._run_work = async_work_runner(handler, adapter, FOREVER)
        self._waiting: deque[Work] = deque()
        self._tasks: set[asyncio.Task[None]] = set()

    def submit(self, works: Sequence[Work]) -> None:
        self._waiting.extend(works)

    def close(self) -> None:
        self._waiting.clear()
        for task in self._tasks:
            end_task(task)

    def work(self) -> bool:
        """Only starts them; the loop, which all members share, is run by whoever turns the members."""
        for task in [task for task in self._tasks if task.done()]:
            self._tasks.remove(task)
            if not task.cancelled():
                task.result()  # raises only what an attempt does not catch, and that is for the test to see
        started = False
        while self._waiting and len(self._tasks) < self._concurrency:
            self._tasks.add(self._loop.create_task(self._do(self._waiting.popleft())))
            started = True
        return started

    async def _do(self, work: Work) -> None:
        await self._run_work(work)
        self._inbox.put(Worked(work))
