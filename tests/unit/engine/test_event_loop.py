"""Workers for ``async def``: whatever is submitted is begun, whenever it comes."""

import time
from queue import SimpleQueue
from typing import Any

from dispatching import make_dispatch, records
from penstock import App
from penstock.app import RECORDS
from penstock.core.lease import FOREVER
from penstock.core.work import Work
from penstock.engine.messages import Worked
from penstock.engine.workers import EventLoopWorkers

WAIT_SECONDS = 120


class Inbox(SimpleQueue[Any]):
    """Submits the second work when the first is done: in the moment after its task has looked for more in vain."""

    workers: EventLoopWorkers
    next: list[Work]

    def put(self, message: Any, *_: Any) -> None:
        if self.next:
            self.workers._loop.call_soon(self.workers._start, [self.next.pop()])
        super().put(message)


def test_a_work_that_comes_while_a_task_is_about_to_end_is_begun_all_the_same() -> None:
    app = App("shop")

    @app.consume("t", concurrency=1, order="none")
    async def handle(value: bytes) -> None: ...

    dispatch = make_dispatch(order="none", concurrency=2)
    dispatch.assign(("t", 0), 0)
    dispatch.deliver(("t", 0), records(("t", 0), 0, 2))
    first, second = (Work(runs, has_dead_letter=False, clock=time.monotonic) for runs in dispatch.take(0.0, 1))
    inbox = Inbox()
    inbox.workers, inbox.next = EventLoopWorkers(app.handlers[0], inbox, RECORDS, FOREVER), [second]
    try:
        inbox.workers.submit([first])
        assert inbox.get(timeout=WAIT_SECONDS) == Worked(first)
        assert inbox.get(timeout=WAIT_SECONDS) == Worked(second)
    finally:
        inbox.workers.close()
