"""The resources of one handler in one Python worker of Spark. They are kept from slice to slice.

Spark ends its Python workers without a word to them, so what comes after a yield runs only for resources of partitions
that moved to another worker, and for handlers that the worker forgets.
"""

import asyncio
import threading
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from penstock.app import Handler
from penstock.app.resources import AsyncPartitionResources, AsyncResources, OpenResources, PartitionResources
from penstock.core.progress.slices import Slice
from penstock.core.records.record import TopicPartition
from penstock.errors import CallbackError

# How long a Python worker waits for the shutdown of async resources that it does not need any more.
_CLOSE_SECONDS = 5.0


class TaskResources:
    """Any thread of a task may call it; a Python worker runs one task at a time."""

    def __init__(self, handler: Handler, worker: str = "") -> None:
        self._declared = handler
        self._worker = worker
        self._lock = threading.Lock()
        self._process: OpenResources | None = None
        self._handler = handler
        self._here = threading.local()
        self._of_threads: list[OpenResources] = []
        self._of_loop: tuple[asyncio.AbstractEventLoop, AsyncResources, Handler] | None = None
        self._partitions: PartitionResources | AsyncPartitionResources | None = None
        self._epochs: dict[TopicPartition, int] = {}
        self._problems: list[CallbackError] = []

    def begin(self, slices: Sequence[Slice], owners: Mapping[TopicPartition, str]) -> None:
        """Make the resources of the process, and close those of partitions whose last slice ran elsewhere.

        Raises what a resource raises.
        """
        with self._lock:
            self._make()
        stale = [each.tp for each in slices if not self._is_kept(each, owners)]
        self._epochs.update({each.tp: each.epoch for each in slices})
        if isinstance(self._partitions, PartitionResources):
            self._partitions.close(stale)
        elif self._partitions is not None and self._of_loop is not None and self._partitions.has_any:
            _wait_for(self._partitions.close(stale), self._of_loop[0])
        if self._problems:
            raise self._problems.pop()

    def _is_kept(self, each: Slice, owners: Mapping[TopicPartition, str]) -> bool:
        return self._epochs.get(each.tp) == each.epoch and owners.get(each.tp) == self._worker

    def _make(self) -> None:
        if self._process is not None:
            return
        opened = OpenResources()
        opened.make(self._declared.wiring.of_process)
        self._process = opened
        handler = self._declared.with_values(opened.values)
        wiring = handler.wiring
        if wiring.of_partition and not handler.signature.is_async:
            self._partitions = PartitionResources(wiring.of_partition, wiring.supplied, self._problems.append)
            handler = handler.wired(replace(wiring, partitions=self._partitions))
        self._handler = handler

    @contextmanager
    def on_this_thread(self) -> Iterator[Handler]:
        """Return the handler with the resources of the calling thread, which keeps them."""
        complete: Handler | None = getattr(self._here, "handler", None)
        if complete is None:
            wiring = self._handler.wiring
            opened = OpenResources(wiring.supplied)
            opened.make(wiring.of_worker)
            self._of_threads.append(opened)
            complete = self._here.handler = self._handler.with_values(opened.values)
        yield complete

    def on_loop(self, loop: asyncio.AbstractEventLoop) -> Handler:
        """Return the handler with the resources of this event loop, which keeps them."""
        with self._lock:
            if self._of_loop is None:
                handler = self._handler
                resources = AsyncResources(handler.wiring.of_worker, handler.wiring.supplied)
                handler = handler.with_values(asyncio.run_coroutine_threadsafe(resources.make(), loop).result())
                wiring = handler.wiring
                if wiring.of_partition:
                    self._partitions = AsyncPartitionResources(
                        wiring.of_partition, wiring.supplied, self._problems.append
                    )
                    handler = handler.wired(replace(wiring, partitions=self._partitions))
                self._of_loop = loop, resources, handler
            return self._of_loop[2]

    def close(self) -> None:
        """Close everything, because the worker forgets this handler."""
        if self._of_loop is not None:
            loop, resources, _ = self._of_loop
            _wait_for(self._close_on_loop(resources), loop)
        elif isinstance(self._partitions, PartitionResources):
            self._partitions.close()
        for each in self._of_threads:
            each.close()
        if self._process is not None:
            self._process.close()

    async def _close_on_loop(self, resources: AsyncResources) -> None:
        if isinstance(self._partitions, AsyncPartitionResources):
            await self._partitions.close()
        await resources.close()


def _wait_for(closing: Coroutine[Any, Any, None], loop: asyncio.AbstractEventLoop) -> None:
    """Wait for this, but not for ever: what closes slowly goes on closing, beside the next slices."""
    with suppress(TimeoutError):
        asyncio.run_coroutine_threadsafe(closing, loop).result(_CLOSE_SECONDS)
