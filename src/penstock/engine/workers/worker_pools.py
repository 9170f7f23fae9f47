"""Workers run the handlers: threads for ``def``, one event loop for ``async def``, processes if declared."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Protocol

from penstock.app import (
    Handler,
    RecordAdapter,
    RunWork,
    async_work_runner,
    batch_runner,
    is_ended,
    single_record_runner,
    work_runner,
    worker_error,
)
from penstock.app.attempts.work import Work
from penstock.app.attempts.work_slots import WorkSlots
from penstock.app.dispatching.engine_threads import mark_engine_thread
from penstock.core.progress.lease import Lease
from penstock.core.records.record import TopicPartition
from penstock.engine.dispatch.finished_works import FinishedWorks
from penstock.engine.dispatch.thread_messages import EngineError, Inbox
from penstock.engine.workers.event_loop import OnEventLoop, WakeUp
from penstock.engine.workers.work_queue import WorkQueue
from penstock.engine.workers.worker_processes import Child, check_importable
from penstock.engine.workers.worker_resources import ThreadResources
from penstock.errors import CallbackError, PenstockError

_CLOSE_SECONDS = 1.0


class Workers(Protocol):
    """At most ``concurrency`` bundles are worked on at once; further ones are queued."""

    def submit(self, works: Sequence[Work]) -> None: ...

    def resize(self, concurrency: int) -> None:
        """Work on at most so many bundles at once from now on. Those in progress are not interrupted."""

    def gone(self, tps: Iterable[TopicPartition]) -> "Future[None] | None":
        """Close the resources of these partitions, from any thread. Returns when that ended; None if there are none."""

    def close(self) -> CallbackError | None:
        """End the workers and close their resources. Returns what went wrong with that."""


def make_workers(
    handler: Handler,
    inbox: Inbox,
    adapter: RecordAdapter,
    lease: Lease,
    stop: threading.Event | None = None,
    *,
    finished_works: FinishedWorks | None = None,
) -> Workers:
    """Make the workers, and the resources of an event loop; raises what those raise. ``stop`` gives them up."""
    if handler.signature.is_async:
        return EventLoopWorkers(handler, inbox, adapter, lease, stop=stop, finished_works=finished_works)
    if handler.workers == "process":
        check_importable(handler)
    return ThreadWorkers(handler, inbox, adapter, lease, finished_works=finished_works)


class ThreadWorkers:
    """Starts a thread when a bundle may run and no thread is free; with ``workers="process"``, each owns a process.

    Threads stay until the end: if fewer bundles may run, some wait, and keep their resources.
    """

    def __init__(
        self,
        handler: Handler,
        inbox: Inbox,
        adapter: RecordAdapter,
        lease: Lease,
        *,
        finished_works: FinishedWorks | None = None,
    ) -> None:
        self._handler = handler
        self._inbox = inbox
        self._finished_works = finished_works or FinishedWorks(inbox)
        self._adapter = adapter
        self._lease = lease
        self._slots = WorkSlots(handler.largest_concurrency)
        self._works = WorkQueue()
        self._threads: list[threading.Thread] = []
        self._children: list[Child] = []
        self._resources = ThreadResources(handler, lambda error: inbox.put(EngineError(error, fatal=True)))

    def submit(self, works: Sequence[Work]) -> None:
        self._start(self._slots.add(works))

    def resize(self, concurrency: int) -> None:
        self._start(self._slots.resize(concurrency))

    def _start(self, works: Sequence[Work]) -> None:
        for work in works:
            self._works.put(work)
        while len(self._threads) < self._slots.running:
            name = f"{self._handler.name}-worker-{len(self._threads) + 1}"
            # A daemon: a handler that never returns must not keep the process alive after drain_timeout.
            self._threads.append(threading.Thread(target=self._serve, name=name, daemon=True))
            self._threads[-1].start()

    def gone(self, tps: Iterable[TopicPartition]) -> "Future[None] | None":
        partitions = self._resources.partitions
        return partitions.gone(tps) if partitions is not None and partitions.has_any else None

    def close(self) -> CallbackError | None:
        for _ in self._threads:
            self._works.put(None)
        problem = self._resources.close(self._threads) if self._handler.wiring.resources else None
        if self._children:
            # A daemon thread ends with this process, but a child process would continue, so kill it.
            deadline = time.monotonic() + _CLOSE_SECONDS
            for thread in self._threads:
                thread.join(max(0.0, deadline - time.monotonic()))
            for child in self._children:
                child.kill()
        return problem

    def _serve(self) -> None:
        mark_engine_thread()
        try:
            self._run_thread()
        except BaseException as error:  # noqa: BLE001 - unreported, the bundle would never be finished
            self._inbox.put(worker_failure(self._handler, error))

    def _run_thread(self) -> None:
        handler, adapter, lease = self._handler, self._adapter, self._lease
        if handler.workers == "process":
            child = Child(handler, adapter)
            self._children.append(child)
            self._work(
                batch_runner(child, adapter, lease) if handler.batch else single_record_runner(child, adapter, lease)
            )
            self._resources.close_here(child.close)
        else:
            with self._resources.on_this_thread() as complete:
                self._work(work_runner(complete, adapter, lease))

    def _work(self, run_work: RunWork) -> None:
        own: SimpleQueue[Work | None] = SimpleQueue()
        while (work := self._works.get(own)) is not None:
            while work is not None:
                run_work(work)
                # Become free before the report: the dispatcher may react with a bundle that this thread can take.
                done, work = work, self._slots.next()
                self._finished_works.add(done)


def worker_failure(handler: Handler, error: BaseException) -> EngineError:
    """An error that is not the outcome of an attempt: the app stops, and the bundle's records stay uncommitted."""
    if not isinstance(error, PenstockError):
        error = worker_error(handler, error)
    return EngineError(error, fatal=True)


class EventLoopWorkers(OnEventLoop):
    """One event loop on one thread; up to ``concurrency`` tasks take bundles from a queue."""

    def __init__(
        self,
        handler: Handler,
        inbox: Inbox,
        adapter: RecordAdapter,
        lease: Lease,
        *,
        stop: threading.Event | None = None,
        finished_works: FinishedWorks | None = None,
    ) -> None:
        self._inbox = inbox
        self._finished_works = finished_works or FinishedWorks(inbox)
        self._concurrency = handler.largest_concurrency
        self._serving = 0  # tasks that will take another bundle; a task that ends may still be in ``_tasks``
        self._waiting: deque[Work] = deque()  # the dispatcher appends, the loop's thread takes
        self._wake_up = WakeUp(self._start)
        super().__init__(handler, stop=stop, report=lambda error: inbox.put(EngineError(error, fatal=True)))
        self._run_work = async_work_runner(self._handler, adapter, lease)
        self._wake_up.attach(self._loop)

    def submit(self, works: Sequence[Work]) -> None:
        self._waiting.extend(works)
        self._wake_up()

    def resize(self, concurrency: int) -> None:
        self._loop.call_soon_threadsafe(self._resize, concurrency)

    def _resize(self, concurrency: int) -> None:
        self._concurrency = concurrency
        self._start()

    def close(self) -> CallbackError | None:
        problem = super().close()
        if not self._thread.is_alive():
            self._wake_up.close()
        return problem

    def _start(self) -> None:
        for _ in range(min(len(self._waiting), self._concurrency - self._serving)):
            self._serving += 1
            self._begin(self._work())

    async def _work(self) -> None:
        try:
            while self._waiting and self._serving <= self._concurrency:
                work = self._waiting.popleft()
                try:
                    await self._run_work(work)
                except BaseException as error:
                    if not is_ended(asyncio.current_task()):
                        self._inbox.put(worker_failure(self._handler, error))
                    raise
                self._finished_works.add(work)
        finally:
            self._serving -= 1
            self._end()
