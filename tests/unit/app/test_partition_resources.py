"""The resources of partitions under several threads."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator

import pytest

from penstock.app.resources import AsyncPartitionResources, PartitionResources, Resource
from penstock.errors import CallbackError, HandlerBug

TP = ("orders", 0)
_SECONDS = 60.0


class Caches:
    """Counts what is made and closed."""

    def __init__(self) -> None:
        self.made = 0
        self.closed: list[int] = []
        self.problems: list[CallbackError] = []
        resource = Resource("cache", self.cache, "partition", is_generator=True)
        self.partitions = PartitionResources([resource], {}, self.problems.append)

    def cache(self) -> Iterator[int]:
        self.made += 1
        number = self.made
        yield number
        self.closed.append(number)
        if number == 3:
            raise ValueError("cannot close")


def test_all_users_of_a_partition_have_the_same_resource() -> None:
    caches, barrier, seen = Caches(), threading.Barrier(4), []

    def use() -> None:
        with caches.partitions.use(TP) as values:
            barrier.wait(_SECONDS)
            seen.append(values["cache"])

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_SECONDS)
    assert seen == [1, 1, 1, 1]
    assert caches.closed == []
    caches.partitions.close()
    assert caches.closed == [1]


def test_the_last_user_closes_the_resource_of_a_lost_partition() -> None:
    caches = Caches()
    with caches.partitions.use(TP):
        assert caches.partitions.gone([TP]) is None
        assert caches.closed == []
        with caches.partitions.use(TP) as values:
            # The partition came back while an old handler is in progress.
            assert values["cache"] == 2
        assert caches.closed == []
    assert caches.closed == [1]
    closing = caches.partitions.gone([TP, ("orders", 1)])
    assert closing is not None
    closing.result(_SECONDS)
    assert caches.closed == [1, 2]
    with caches.partitions.use(TP):
        pass
    caches.partitions.close([TP])
    assert [problem.problem for problem in caches.problems] == [
        "The resource cache raised while it was closed ValueError: cannot close."
    ]


def test_the_end_waits_for_the_resource_of_a_lost_partition_that_is_still_closing() -> None:
    """The event loop ends after that, and would break off the close."""
    closed: list[bool] = []
    problems: list[CallbackError] = []

    async def cache() -> AsyncIterator[int]:
        yield 1
        for _ in range(10):  # as a close that waits for a server
            await asyncio.sleep(0)
        closed.append(True)

    async def run() -> None:
        resource = Resource("cache", cache, "partition", is_async=True, is_generator=True)
        partitions = AsyncPartitionResources([resource], {}, problems.append)
        async with partitions.use(TP):
            await partitions.close([TP])  # lost while a handler is in progress, which closes it
            assert closed == []
        await partitions.close()

    asyncio.run(run())
    assert closed == [True]
    assert problems == []


def test_a_resource_that_fails_late_does_not_make_that_of_the_next_epoch_forgotten() -> None:
    closed: list[int] = []
    numbers = iter((1, 2))
    problems: list[CallbackError] = []

    async def run() -> None:
        may_fail = asyncio.Event()

        async def cache() -> AsyncIterator[int]:
            number = next(numbers)
            if number == 1:
                await may_fail.wait()
                raise ValueError("too late")
            yield number
            closed.append(number)

        resource = Resource("cache", cache, "partition", is_async=True, is_generator=True)
        partitions = AsyncPartitionResources([resource], {}, problems.append)

        async def use() -> None:
            async with partitions.use(TP):
                pass

        first = asyncio.create_task(use())
        await asyncio.sleep(0)
        await partitions.close([TP])
        async with partitions.use(TP):
            may_fail.set()
            with pytest.raises(HandlerBug, match="too late"):
                await first
        await partitions.close()

    asyncio.run(run())
    assert closed == [2]
