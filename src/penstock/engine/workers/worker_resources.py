"""The resources of workers: made where the worker runs, before its first record, and closed there after its last."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from penstock.app import Handler
from penstock.app.resources import OpenResources, PartitionResources, never_closed
from penstock.errors import CallbackError

# How long idle workers may take to begin to close. Those in a handler that never returns do not count.
_BEGIN_SECONDS = 1.0
_STOP_CHECK_SECONDS = 0.1


class ThreadResources:
    """The resources of the threads that run one ``def`` handler. ``report`` gets errors of closing partitions."""

    def __init__(self, handler: Handler, report: Callable[[CallbackError], None]) -> None:
        wiring = handler.wiring
        self.partitions: PartitionResources | None = None
        if wiring.of_partition:
            self.partitions = PartitionResources(wiring.of_partition, wiring.supplied, report)
            handler = handler.wired(replace(wiring, partitions=self.partitions))
        self._handler = handler
        # Threads add themselves, and ``close`` reads it; both operations are atomic.
        self._closing: dict[threading.Thread, CallbackError | None] = {}
        self._closed: list[CallbackError | None] = []

    @contextmanager
    def on_this_thread(self) -> Iterator[Handler]:
        """Make the resources of the calling thread, and return the handler that has them."""
        wiring = self._handler.wiring
        if not wiring.of_worker:
            yield self._handler
            return
        opened = OpenResources(wiring.supplied)
        opened.make(wiring.of_worker)
        try:
            yield self._handler.with_values(opened.values)
        finally:
            self.close_here(opened.close)

    def close_here(self, close: Callable[[], CallbackError | None]) -> None:
        """Close something on the calling thread, for which ``close`` waits."""
        thread = threading.current_thread()
        self._closing[thread] = None
        self._closed.append(close())
        self._closing.pop(thread, None)

    def close(self, threads: Sequence[threading.Thread]) -> CallbackError | None:
        """Wait for the threads, which were asked to end, as long as they close something. Returns what went wrong."""
        handler = self._handler
        begun = time.monotonic()
        for thread in threads:
            thread.join(max(0.0, begun + _BEGIN_SECONDS - time.monotonic()))
        for thread in [*self._closing]:
            thread.join(max(0.0, begun + handler.drain_timeout - time.monotonic()))
        if self.partitions is not None:
            self.partitions.close()
        problem = next((each for each in self._closed if each is not None), None)
        if problem is None and self._closing:
            problem = never_closed(f"A resource of a worker of handler {handler.name}", handler.drain_timeout)
        return problem


def until_made(making: "Future[Any]", stop: threading.Event, *, limit: float, what: str) -> Any:
    """Wait for resources. They are given up if they are still not made ``limit`` seconds after ``stop`` was set."""
    stopped_at: float | None = None
    while not wait([making], _STOP_CHECK_SECONDS).done:
        now = time.monotonic()
        stopped_at = stopped_at or (now if stop.is_set() else None)
        if stopped_at is not None and now - stopped_at > limit:
            making.cancel()
            raise CallbackError(
                f"{what} were still not made {limit:g} s after the stop.",
                hint="Nothing was consumed. Give their waits a time limit.",
            )
    return making.result()
