"""Resources that a Python worker keeps from slice to slice."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator

import pytest

from penstock import App
from penstock.app.resources import AsyncPartitionResources
from penstock.core.progress.slices import Slice
from penstock.spark.tasks import task_resources
from penstock.spark.tasks.task_resources import TaskResources
from spark_tasks import TP


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def test_an_async_resource_that_closes_slowly_holds_up_no_slice_for_ever(
    loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, may_close, closed = App("shop"), threading.Event(), threading.Event()

    @app.resource(scope="partition")
    async def cache() -> AsyncIterator[list[int]]:
        yield []
        await asyncio.to_thread(may_close.wait, 60)
        closed.set()

    @app.consume("orders")
    async def handle(value: int, cache: list[int]) -> None: ...

    monkeypatch.setattr(task_resources, "_CLOSE_SECONDS", 0.1)
    resources = TaskResources(app.wired_handlers()[0], "worker")
    resources.begin([Slice(TP, 0, 1, epoch=1)], {})
    partitions = resources.on_loop(loop).wiring.partitions
    assert isinstance(partitions, AsyncPartitionResources)

    async def use() -> None:
        async with partitions.use(TP):
            pass

    asyncio.run_coroutine_threadsafe(use(), loop).result(10)
    resources.begin([Slice(TP, 1, 2, epoch=2)], {})
    assert not closed.is_set()
    may_close.set()
    assert closed.wait(10)
    may_close.clear()
    asyncio.run_coroutine_threadsafe(use(), loop).result(10)
    resources.close()
    may_close.set()
