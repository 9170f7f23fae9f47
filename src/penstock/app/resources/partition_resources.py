"""The resources of each partition: made at its first record, closed when the partition is gone and nobody uses them."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from penstock.app.resources.open_resources import AsyncResources, OpenResources
from penstock.app.resources.resource import Resource
from penstock.core.records.record import TopicPartition
from penstock.errors import CallbackError, HandlerBug

Report = Callable[[CallbackError], None]
"""Called on any thread with what a resource raised while it was closed."""


@dataclass(eq=False)
class _Opened:
    resources: OpenResources
    users: int = 0
    is_gone: bool = False
    is_made: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)


class PartitionResources:
    """For ``def`` handlers. Any thread may call it.

    A partition that was lost may still have handlers in progress; the last of them closes its resources.
    """

    def __init__(self, resources: Sequence[Resource], given: Mapping[str, Any], report: Report) -> None:
        self.names = tuple(each.name for each in resources)
        self._resources = resources
        self._given = given
        self._report = report
        self._lock = threading.Lock()
        self._opened: dict[TopicPartition, _Opened] = {}

    @contextmanager
    def use(self, tp: TopicPartition) -> Iterator[Mapping[str, Any]]:
        """Return the values by name. They are not closed inside the block."""
        with self._lock:
            opened = self._opened.get(tp)
            if opened is None:
                opened = self._opened[tp] = _Opened(OpenResources(self._given))
            opened.users += 1
        try:
            with opened.lock:
                if not opened.is_made:
                    with _not_made(tp):
                        opened.resources.make(self._resources)
                    opened.is_made = True
            yield opened.resources.values
        finally:
            with self._lock:
                opened.users -= 1
                is_last = opened.is_gone and not opened.users
            if is_last:
                self._close(opened)

    @property
    def has_any(self) -> bool:
        return bool(self._opened)

    def gone(self, tps: Iterable[TopicPartition]) -> "Future[None] | None":
        """Close the resources of these partitions on a thread of its own; returns when that ended, None for nothing.

        A close that never ends must not hold up the caller for ever.
        """
        closing = self._take(tps)
        if not closing:
            return None
        ended = Future[None]()

        def close() -> None:
            for each in closing:
                self._close(each)
            ended.set_result(None)

        threading.Thread(target=close, name="close-partition-resources", daemon=True).start()
        return ended

    def close(self, tps: Iterable[TopicPartition] | None = None) -> None:
        """Close the resources of these partitions, or of all, on the calling thread."""
        for each in self._take([*self._opened] if tps is None else tps):
            self._close(each)

    def _take(self, tps: Iterable[TopicPartition]) -> list[_Opened]:
        with self._lock:
            taken = [opened for tp in tps if (opened := self._opened.pop(tp, None)) is not None]
            for each in taken:
                each.is_gone = True
            return [each for each in taken if not each.users]

    def _close(self, opened: _Opened) -> None:
        if (problem := opened.resources.close()) is not None:
            self._report(problem)


@dataclass(eq=False)
class _AsyncOpened:
    resources: AsyncResources
    users: int = 0
    is_gone: bool = False


class AsyncPartitionResources:
    """For ``async def`` handlers, on their event loop; ``has_any`` may be read by any thread."""

    def __init__(self, resources: Sequence[Resource], given: Mapping[str, Any], report: Report) -> None:
        self.names = tuple(each.name for each in resources)
        self._resources = resources
        self._given = given
        self._report = report
        self._opened: dict[TopicPartition, _AsyncOpened] = {}
        self._closing = set[asyncio.Task[None]]()

    @asynccontextmanager
    async def use(self, tp: TopicPartition) -> AsyncIterator[Mapping[str, Any]]:
        """Return the values by name. They are not closed inside the block."""
        opened = self._opened.get(tp)
        if opened is None:
            opened = self._opened[tp] = _AsyncOpened(AsyncResources(self._resources, self._given))
        opened.users += 1
        try:
            with _not_made(tp):
                try:
                    values = await opened.resources.make()
                except CallbackError:
                    if self._opened.get(tp) is opened:  # else another attempt is making them again
                        del self._opened[tp]
                    raise
            yield values
        finally:
            opened.users -= 1
            if opened.is_gone and not opened.users:
                # Not awaited: this attempt may be cancelled, and the close must run to its end.
                self._begin_to_close([opened])

    @property
    def has_any(self) -> bool:
        return bool(self._opened)

    async def close(self, tps: Iterable[TopicPartition] | None = None) -> None:
        """Close the resources of these partitions; or of all, with those that are still closing."""
        found = [*self._opened] if tps is None else tps
        taken = [opened for tp in found if (opened := self._opened.pop(tp, None)) is not None]
        for each in taken:
            each.is_gone = True
        closing = self._begin_to_close([each for each in taken if not each.users])
        await asyncio.wait({closing} if tps is not None else {*self._closing})

    def _begin_to_close(self, opened: Sequence[_AsyncOpened]) -> asyncio.Task[None]:
        closing = asyncio.get_running_loop().create_task(self._close(opened))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
        return closing

    async def _close(self, closing: Sequence[_AsyncOpened]) -> None:
        for each in closing:
            if (problem := await each.resources.close()) is not None:
                self._report(problem)


@contextmanager
def _not_made(tp: TopicPartition) -> Iterator[None]:
    """Turn the error of a resource into one that stops the app: the record is not its cause."""
    try:
        yield
    except CallbackError as error:
        raise HandlerBug(f"For partition {tp[1]} of {tp[0]}: {error.problem}") from error.__cause__
