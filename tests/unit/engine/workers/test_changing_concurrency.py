"""How many bundles run at once can change while they run, on threads and on an event loop."""

import asyncio
import threading
import time
from queue import SimpleQueue
from typing import Any

import pytest

from dispatch_helpers import make_dispatch, records
from penstock import App
from penstock.app import RECORDS, Handler
from penstock.app.attempts.work import Work
from penstock.core.progress.lease import FOREVER
from penstock.engine.workers.worker_pools import Workers, make_workers

WAIT_SECONDS = 120


class Gate:
    """Counts the handlers that are inside, and lets them go one by one."""

    def __init__(self) -> None:
        self.inside: SimpleQueue[None] = SimpleQueue()
        self._go = threading.Semaphore(0)

    def pass_through(self) -> None:
        self.inside.put(None)
        assert self._go.acquire(timeout=WAIT_SECONDS)

    async def pass_through_async(self) -> None:
        self.inside.put(None)
        while not self._go.acquire(blocking=False):  # noqa: ASYNC110 - threads open it
            await asyncio.sleep(0.001)

    def wait_for(self, count: int) -> None:
        for _ in range(count):
            self.inside.get(timeout=WAIT_SECONDS)

    def open(self, count: int) -> None:
        self._go.release(count)


def handler_of(gate: Gate, *, is_async: bool) -> Handler:
    app = App("shop")

    def handle(value: bytes) -> None:
        gate.pass_through()

    async def handle_async(value: bytes) -> None:
        await gate.pass_through_async()

    app.consume("t", concurrency="auto", order="none", max_concurrency=8)(handle_async if is_async else handle)
    return app.handlers[0]


def make_works(count: int) -> list[Work]:
    dispatch = make_dispatch(order="none", concurrency=count)
    dispatch.assign(("t", 0), 0)
    dispatch.deliver(("t", 0), records(("t", 0), 0, count))
    return [Work(runs, has_dead_letter=False, clock=time.monotonic) for runs in dispatch.take(0.0, 1)]


@pytest.mark.parametrize("is_async", [False, True])
def test_fewer_and_more_bundles_run_at_once_after_a_change(is_async: bool) -> None:  # noqa: FBT001
    gate, inbox = Gate(), SimpleQueue[Any]()
    workers: Workers = make_workers(handler_of(gate, is_async=is_async), inbox, RECORDS, FOREVER)
    try:
        workers.resize(2)
        workers.submit(make_works(20))
        gate.wait_for(2)
        assert gate.inside.empty()
        workers.resize(6)
        gate.wait_for(4)
        workers.resize(1)
        gate.open(5)  # five of the six end, and nothing begins in their place
        for _ in range(5):
            inbox.get(timeout=WAIT_SECONDS)
        assert gate.inside.empty()
        gate.open(1)
        gate.wait_for(1)
        inbox.get(timeout=WAIT_SECONDS)
        assert gate.inside.empty()
        workers.resize(8)
        gate.wait_for(7)
        gate.open(100)
        for _ in range(14):
            inbox.get(timeout=WAIT_SECONDS)
    finally:
        gate.open(100)
        workers.close()


def test_threads_start_when_they_are_needed_and_then_stay() -> None:
    gate, inbox = Gate(), SimpleQueue[Any]()
    handler = handler_of(gate, is_async=False)
    workers = make_workers(handler, inbox, RECORDS, FOREVER)

    def threads() -> list[threading.Thread]:
        return [each for each in threading.enumerate() if each.name.startswith(f"{handler.name}-worker-")]

    try:
        assert threads() == []
        workers.submit(make_works(3))
        gate.wait_for(3)
        known = threads()
        assert len(known) == 3
        gate.open(3)
        for _ in range(3):
            inbox.get(timeout=WAIT_SECONDS)
        workers.resize(1)
        workers.resize(8)
        workers.submit(make_works(3))
        gate.wait_for(3)
        assert threads() == known
    finally:
        gate.open(100)
        workers.close()


@pytest.mark.parametrize("is_async", [False, True])
def test_a_worker_that_ends_a_bundle_begins_the_one_that_was_queued_first(is_async: bool) -> None:  # noqa: FBT001
    """A rate depends on this: see ``RateWaits.begin_turn``."""
    gate, inbox = Gate(), SimpleQueue[Any]()
    workers: Workers = make_workers(handler_of(gate, is_async=is_async), inbox, RECORDS, FOREVER)
    try:
        workers.resize(3)
        works = make_works(12)
        workers.submit(works[:5])
        workers.submit(works[5:])
        gate.wait_for(3)
        for ended in range(9):
            assert [work.began is not None for work in works] == [index < ended + 3 for index in range(12)]
            gate.open(1)
            inbox.get(timeout=WAIT_SECONDS)
            gate.wait_for(1)
    finally:
        gate.open(100)
        workers.close()
