"""``concurrency="auto"`` in a task: what it finds serves the next slice too."""

import asyncio

from penstock.core.reports.events import ConcurrencyChanged
from spark_tasks import RealTask, declare, source


def test_the_number_is_carried_on_from_slice_to_slice() -> None:
    running = most = 0

    async def handle(value: int) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.05)
        running -= 1

    handler = declare(handle, order="none", concurrency="auto", max_concurrency=12)
    records = source(*(b"%d" % number for number in range(160)), keys=[None] * 160)
    task = RealTask(handler, records, seconds=0.4)
    assert task.auto is not None
    assert task.auto.limit == 12
    assert most == 12
    assert len(task.slices) > 1
    assert task.events, "each slice reports at most one change"
    changes = [each.concurrency for each in task.events if isinstance(each, ConcurrencyChanged)]
    assert changes[-1] == 12
    assert len(changes) <= len(task.slices)
