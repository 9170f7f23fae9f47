"""An event loop on its own thread, for ``async def`` handlers."""

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from typing import Any

from penstock.app import Handler, end_task
from penstock.app.dispatching.engine_threads import mark_engine_thread
from penstock.app.resources import AsyncPartitionResources, AsyncResources, never_closed
from penstock.core.records.record import TopicPartition
from penstock.engine.workers.worker_resources import until_made
from penstock.errors import CallbackError

_CLOSE_SECONDS = 1.0
_GIVE_UP_SECONDS = 0.1


class WakeUp:
    """Lets the thread of an event loop call ``function`` soon; any thread may ask for it.

    ``loop.call_soon_threadsafe`` does the same for any function. But it makes a handle for each call, and its loop
    reads until nothing is left, so that the last read always raises an error. A wake-up by this socket takes three
    quarters of the processor time.
    """

    def __init__(self, function: Callable[[], None]) -> None:
        self._function = function
        self._reads, self._writes = socket.socketpair()
        for end in (self._reads, self._writes):
            end.setblocking(False)  # noqa: FBT003 - Python's own parameter

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """From now on this loop calls the function, also for earlier wake-ups."""
        loop.call_soon_threadsafe(loop.add_reader, self._reads, self._run)

    def __call__(self) -> None:
        # If the socket is full, the loop has enough to read; if it is closed, the loop has ended.
        with suppress(OSError):
            self._writes.send(b"\0")

    def _run(self) -> None:
        self._reads.recv(4096)  # of several wake-ups, one is enough
        self._function()

    def close(self) -> None:
        """Close the socket, after the loop has ended."""
        self._reads.close()
        self._writes.close()


class OnEventLoop:
    """Base class of workers that run on an event loop; other threads use ``self._loop.call_soon_threadsafe``.

    The constructor returns when the resources of the loop are made, and raises what they raise. Then ``_handler`` has
    them. ``report`` gets errors of closing the resources of partitions.
    """

    def __init__(
        self, handler: Handler, *, stop: threading.Event | None, report: Callable[[CallbackError], None]
    ) -> None:
        self._handler = handler
        self._loop = asyncio.new_event_loop()
        self._closing = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._resources: AsyncResources | None = None
        self._partitions: AsyncPartitionResources | None = None
        self._closing_problem: CallbackError | None = None
        self._ending: asyncio.Task[None] | None = None  # what ends the loop
        self._thread = threading.Thread(target=self._run_loop, name=f"{handler.name}-event-loop", daemon=True)
        self._thread.start()
        wiring = handler.wiring
        if wiring.of_worker:
            self._make_resources(stop or threading.Event())
        if wiring.of_partition:
            supplied = self._handler.wiring.supplied
            self._partitions = AsyncPartitionResources(wiring.of_partition, supplied, report)
            self._handler = self._handler.wired(replace(self._handler.wiring, partitions=self._partitions))

    def _make_resources(self, stop: threading.Event) -> None:
        handler = self._handler
        self._resources = AsyncResources(handler.wiring.of_worker, handler.wiring.supplied)
        making = asyncio.run_coroutine_threadsafe(self._resources.make(), self._loop)
        what = f"The resources of handler {handler.name}"
        try:
            values = until_made(making, stop, limit=handler.drain_timeout, what=what)
        except BaseException:
            self._resources = None  # they closed what they had made
            self.close()
            raise
        self._handler = handler.with_values(values)

    def gone(self, tps: Iterable[TopicPartition]) -> "Future[None] | None":
        """Close the resources of these partitions, from any thread. Returns when that ended; None if there are none."""
        if self._partitions is None or not self._partitions.has_any:
            return None
        return asyncio.run_coroutine_threadsafe(self._partitions.close(tps), self._loop)

    def close(self) -> CallbackError | None:
        """Cancel the tasks in progress, close the resources and end the loop. Returns what went wrong."""
        self._closing = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        limit = self._handler.drain_timeout if self._resources or self._partitions else 0.0
        self._thread.join(timeout=_CLOSE_SECONDS + limit)
        if limit and self._thread.is_alive():
            # If nothing ended them, Python would report their tasks as "destroyed but pending" when the program exits.
            with suppress(RuntimeError):  # it has closed at this moment
                self._loop.call_soon_threadsafe(self._give_up)
            self._thread.join(timeout=_CLOSE_SECONDS)
            return never_closed(f"The resources of handler {self._handler.name}", limit)
        return self._closing_problem

    def _give_up(self) -> None:
        """Cancel what still closes. Repeatedly: one task closes several resources, one after the other."""
        for task in asyncio.all_tasks(self._loop):
            if task is not self._ending:
                task.cancel()
        self._loop.call_later(_GIVE_UP_SECONDS, self._give_up)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a task, which calls ``_end`` last; only for the loop's thread.

        The set keeps the task alive: the loop holds tasks only weakly.
        """
        self._tasks.add(self._loop.create_task(work))

    def _end(self) -> None:
        """Forget the current task. In a callback of the task, the loop would have to look at its sockets once more."""
        self._tasks.discard(asyncio.current_task())

    def _run_loop(self) -> None:
        mark_engine_thread()
        asyncio.set_event_loop(self._loop)
        while True:
            try:
                self._loop.run_forever()
                break
            except (SystemExit, KeyboardInterrupt):
                # If a task that a handler started raises one of these, asyncio also raises it out of run_forever.
                if self._closing:
                    break
        self._ending = self._loop.create_task(self._end_all())
        self._loop.run_until_complete(self._ending)
        self._loop.close()

    async def _end_all(self) -> None:
        for task in self._tasks:
            end_task(task)
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._close_resources()
        await self._loop.shutdown_asyncgens()

    async def _close_resources(self) -> None:
        if self._partitions is not None:
            await self._partitions.close()
        if self._resources is not None:
            self._closing_problem = await self._resources.close()
