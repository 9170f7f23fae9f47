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
    # How far the number grows depends on the machine.
    assert task.auto is not None
    assert 4 < task.auto.limit <= 12
    assert 4 < most <= 12
    assert len(task.slices) > 1
    changes = [each for each in task.events if isinstance(each, ConcurrencyChanged)]
    assert changes
    assert len(changes) <= len(task.slices), "each slice reports at most one change"
    assert changes[0].before == 4
    assert all(each.before > 4 for each in changes[1:]), "no later slice begins with 4 again"
