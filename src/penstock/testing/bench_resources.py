"""Resources on the bench: made on the test's own thread when the app starts, and closed when it has stopped."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from math import inf
from typing import Any, TypeVar

from penstock.app import App, Handler
from penstock.app.resources import AsyncPartitionResources, AsyncResources, OpenResources, PartitionResources
from penstock.core.records.record import TopicPartition
from penstock.core.reports.events import Error
from penstock.errors import CallbackError, ConfigError
from penstock.testing.world import World

T = TypeVar("T")


class BenchResources:
    """The resources of one process of the app. Each handler has one worker."""

    def __init__(self, app: App, given: Mapping[str, Any], world: World) -> None:
        self._app = app
        self._given = given
        self._world = world
        self._closers: list[Callable[[], CallbackError | None]] = []
        self._problems: list[CallbackError] = []

    def make(self) -> list[Handler]:
        """Make the resources, and return the handlers that have them. If one raises, the others are closed."""
        declared = self._app.wired_handlers(self._given)
        try:
            return [self._of_worker(each) for each in self._of_process(declared)]
        except BaseException:
            self.close()
            raise

    def close(self) -> CallbackError | None:
        """Close all that is open. Returns the first error."""
        while self._closers:
            if (problem := self._closers.pop()()) is not None:
                self._report(problem)
        problems, self._problems = self._problems, []
        return problems[0] if problems else None

    def _report(self, problem: CallbackError) -> None:
        self._problems.append(problem)
        traceback = problem.traceback
        self._world.emit(Error(group=self._app.name, reason=str(problem), fatal=True, traceback=traceback))

    def _of_process(self, handlers: list[Handler]) -> list[Handler]:
        needed = {each.name: each for handler in handlers for each in handler.wiring.of_process}
        opened = OpenResources()
        opened.make([*needed.values()])
        self._closers.append(opened.close)
        return [
            each.with_values({of.name: opened.values[of.name] for of in each.wiring.of_process}) for each in handlers
        ]

    def _of_worker(self, handler: Handler) -> Handler:
        wiring = handler.wiring
        if wiring.of_worker and handler.signature.is_async:
            resources = AsyncResources(wiring.of_worker, wiring.supplied)
            handler = handler.with_values(self._await(resources.make()))
            self._closers.append(lambda: self._await(resources.close()))
        elif wiring.of_worker:
            opened = OpenResources(wiring.supplied)
            opened.make(wiring.of_worker)
            handler = handler.with_values(opened.values)
            self._closers.append(opened.close)
        return self._of_partition(handler) if wiring.of_partition else handler

    def _of_partition(self, handler: Handler) -> Handler:
        wiring = handler.wiring
        partitions: PartitionResources | AsyncPartitionResources
        if handler.signature.is_async:
            partitions = of_loop = AsyncPartitionResources(wiring.of_partition, wiring.supplied, self._report)
            self._closers.append(lambda: self._await(of_loop.close()))
        else:
            partitions = of_thread = PartitionResources(wiring.of_partition, wiring.supplied, self._report)
            self._closers.append(of_thread.close)
        return handler.wired(replace(wiring, partitions=partitions))

    def _await(self, waited: Awaitable[T]) -> T:
        """Let time pass until the awaitable has its result."""
        loop, clock = self._world.loop, self._world.clock
        task = loop.create_task(_awaited(waited))
        loop.settle()
        while not task.done():
            if loop.next_due == inf:
                task.cancel()
                raise ConfigError(
                    "A resource waits for something that does not happen on a bench.",
                    hint="Replace the resource in your test: Bench(app, NAME=value).",
                )
            clock.move_to(loop.next_due)
            loop.settle()
        result: T = task.result()
        return result


def close_gone(handler: Handler, tps: Iterable[TopicPartition], world: World) -> None:
    """Close the resources of partitions that the bench has revoked or that are lost."""
    partitions = handler.wiring.partitions
    if isinstance(partitions, PartitionResources):
        partitions.close(tps)
    elif partitions is not None and partitions.has_any:
        world.loop.create_task(partitions.close(tps))


async def _awaited(waited: Awaitable[T]) -> T:
    return await waited
