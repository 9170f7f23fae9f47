"""Workers without threads: handlers run when the bench asks for it."""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Protocol

from penstock.app import Handler, RecordAdapter, async_work_runner, end_task, work_runner
from penstock.app.attempts.work import Work
from penstock.core.progress.lease import FOREVER
from penstock.core.scheduling.bundle_size import BundleSize
from penstock.engine.dispatch.thread_messages import Inbox, Worked
from penstock.testing.hand_driven_loop import HandDrivenLoop


class BenchWorkers(Protocol):
    """The dispatcher submits bundles; the bench calls ``work``."""

    def submit(self, works: Sequence[Work]) -> None: ...
    def resize(self, concurrency: int) -> None: ...
    def close(self) -> None: ...

    def work(self) -> bool:
        """Do what can be done now. Returns whether there was anything to do."""


class OneByOne(BundleSize):
    """Each record is a bundle of its own, so that none waits behind another only because they share a bundle."""

    @property
    def size(self) -> int:
        return 1


def make_workers(handler: Handler, inbox: Inbox, adapter: RecordAdapter, loop: HandDrivenLoop) -> BenchWorkers:
    if handler.signature.is_async:
        return BenchLoopWorkers(handler, inbox, adapter, loop)
    return InlineWorkers(handler, inbox, adapter)


class InlineWorkers:
    """Runs ``def`` handlers one after the other, each to its end, in the order in which they were dispatched."""

    def __init__(self, handler: Handler, inbox: Inbox, adapter: RecordAdapter) -> None:
        self._inbox = inbox
        self._works: deque[Work] = deque()
        self._run_work = work_runner(handler, adapter, FOREVER)

    def submit(self, works: Sequence[Work]) -> None:
        self._works.extend(works)

    def resize(self, concurrency: int) -> None:
        """Do nothing: they run one by one."""

    def close(self) -> None:
        self._works.clear()

    def work(self) -> bool:
        if not self._works:
            return False
        # One bundle per call: its effects come before the next bundle, so that lanes and members take turns.
        work = self._works.popleft()
        self._run_work(work)
        self._inbox.put(Worked(work))
        return True


class BenchLoopWorkers:
    """Runs up to ``concurrency`` ``async def`` handlers concurrently, each as far as it gets without waiting."""

    def __init__(self, handler: Handler, inbox: Inbox, adapter: RecordAdapter, loop: HandDrivenLoop) -> None:
        self._concurrency = handler.largest_concurrency
        self._inbox = inbox
        self._loop = loop
        self._run_work = async_work_runner(handler, adapter, FOREVER)
        self._waiting: deque[Work] = deque()
        self._tasks: set[asyncio.Task[None]] = set()

    def submit(self, works: Sequence[Work]) -> None:
        self._waiting.extend(works)

    def resize(self, concurrency: int) -> None:
        self._concurrency = concurrency

    def close(self) -> None:
        self._waiting.clear()
        for task in self._tasks:
            end_task(task)

    def work(self) -> bool:
        """Start tasks. ``Process.settle`` runs the event loop, which all members share."""
        for task in [task for task in self._tasks if task.done()]:
            self._tasks.remove(task)
            if not task.cancelled():
                task.result()  # raises what an attempt does not catch, for the test to see
        started = False
        while self._waiting and len(self._tasks) < self._concurrency:
            self._tasks.add(self._loop.create_task(self._do(self._waiting.popleft())))
            started = True
        return started

    async def _do(self, work: Work) -> None:
        await self._run_work(work)
        self._inbox.put(Worked(work))
