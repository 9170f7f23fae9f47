"""Workers for ``async def``: every submitted work begins, at any time."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from queue import SimpleQueue
from typing import Any

import pytest

from dispatch_helpers import make_dispatch, records
from penstock import App, Record
from penstock.app import RECORDS
from penstock.app.attempts.work import Work
from penstock.core.failures.outcome import DONE, Failed, Outcome
from penstock.core.progress.lease import FOREVER
from penstock.engine.dispatch.thread_messages import Worked
from penstock.engine.workers.worker_pools import EventLoopWorkers

WAIT_SECONDS = 120


class Inbox(SimpleQueue[Any]):
    """Submits the second work right after the task of the first one has found no more work."""

    workers: EventLoopWorkers
    next: list[Work]

    def put(self, message: Any, *_: Any) -> None:
        if self.next:
            self.workers._loop.call_soon(self.workers.submit, [self.next.pop()])
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
    assert not inbox.workers._tasks, "tasks that have ended are forgotten"
    inbox.workers.submit([first])  # has no effect any more


def test_resources_that_never_close_leave_no_pending_task_behind() -> None:
    """Python would report each when the program exits: "Task was destroyed but it is pending"."""
    app, given_up = App("shop"), []

    async def endless() -> AsyncIterator[int]:
        yield 1
        try:
            await asyncio.Event().wait()
        finally:
            given_up.append(True)

    app.resource(scope="worker")(endless)

    @app.resource(scope="worker")
    async def last(endless: int) -> AsyncIterator[int]:
        yield endless
        await asyncio.Event().wait()

    @app.consume("t", drain_timeout="50ms")
    async def handle(value: bytes, last: int) -> None: ...

    (handler,) = app.wired_handlers()
    workers = EventLoopWorkers(handler, SimpleQueue(), RECORDS, FOREVER)
    problem = workers.close()
    assert problem is not None
    assert "did not close within 0.05 s" in problem.problem
    workers._thread.join(WAIT_SECONDS)
    assert not workers._thread.is_alive()
    assert workers._loop.is_closed()
    assert given_up == [True], "the second one to close is given up too"


def cancel_task() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()


async def cancel_itself() -> None:
    cancel_task()
    await asyncio.sleep(60)


async def cancel_itself_twice() -> None:
    cancel_task()
    await cancel_itself()


async def cancel_and_return() -> None:
    cancel_task()


async def cancel_and_swallow() -> None:
    cancel_task()
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        return


async def cancel_from_a_library() -> None:
    raise asyncio.CancelledError


async def exit_generator() -> None:
    raise GeneratorExit


async def exit_process() -> None:
    sys.exit(3)


async def exit_process_in_a_task() -> None:
    await asyncio.create_task(exit_process())


async def interrupt_in_a_task() -> None:
    async def interrupt() -> None:
        raise KeyboardInterrupt

    await asyncio.create_task(interrupt())


class OddError(BaseException):
    """Like gevent's Timeout."""


async def raise_odd() -> None:
    raise OddError("odd")


def outcomes_of(function: Callable[[], Awaitable[None]]) -> list[Outcome]:
    """The outcomes of three records in one task, if the second is handled by this function."""
    app = App("shop")

    @app.consume("t", concurrency=1, order="none", dead_letter="dlq")
    async def handle(value: bytes, record: Record) -> None:
        async with asyncio.timeout(WAIT_SECONDS):
            await asyncio.sleep(0)
        if record.offset == 1:
            await function()

    dispatch = make_dispatch(order="none", concurrency=1)
    dispatch.assign(("t", 0), 0)
    dispatch.deliver(("t", 0), records(("t", 0), 0, 3))
    (runs,) = dispatch.take(0.0, 3)
    work = Work(runs, has_dead_letter=True, clock=time.monotonic)
    inbox: SimpleQueue[Any] = SimpleQueue()
    workers = EventLoopWorkers(app.handlers[0], inbox, RECORDS, FOREVER)
    try:
        workers.submit([work])
        assert inbox.get(timeout=WAIT_SECONDS) == Worked(work)
    finally:
        workers.close()
    return [outcome for _, outcomes, _ in work.collect() for outcome in outcomes]


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (cancel_itself, "asyncio.exceptions.CancelledError"),
        (cancel_itself_twice, "asyncio.exceptions.CancelledError"),
        (cancel_from_a_library, "asyncio.exceptions.CancelledError"),
        (exit_generator, "GeneratorExit"),
        (exit_process, "SystemExit"),
        (exit_process_in_a_task, "SystemExit"),
        (raise_odd, f"{__name__}.OddError"),
    ],
)
def test_anything_a_handler_raises_or_cancels_fails_its_record_and_no_other(
    function: Callable[[], Awaitable[None]], error: str
) -> None:
    first, second, third = outcomes_of(function)
    assert (first, third) == (DONE, DONE)
    assert isinstance(second, Failed)
    assert (second.error_type, second.final) == (error, False)
    assert second.message


@pytest.mark.parametrize("function", [cancel_and_return, cancel_and_swallow])
def test_a_handler_that_cancels_its_task_and_returns_has_not_failed_nor_has_the_next(
    function: Callable[[], Awaitable[None]],
) -> None:
    assert outcomes_of(function) == [DONE, DONE, DONE]


def test_a_handler_that_interrupts_stops_the_app_at_its_record() -> None:
    first, second = outcomes_of(interrupt_in_a_task)
    assert first is DONE
    assert isinstance(second, Failed)
    assert (second.error_type, second.halts) == ("KeyboardInterrupt", True)
