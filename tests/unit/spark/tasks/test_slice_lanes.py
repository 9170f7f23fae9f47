"""Several records of a task at once: which of them run together, in which order, and within which limits."""

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Message

from penstock import Record, Retry
from penstock.core.progress.offset_map import decode
from penstock.core.progress.slices import Reached, Wait
from penstock.core.reports.record_counts import Counts
from penstock.errors import HandlerError
from spark_tasks import RealTask, Task, declare, source

WAIT_SECONDS = 120.0


def numbers(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


def keyed(count: int, keys: int) -> list[Message]:
    return source(*numbers(count), keys=[b"key-%d" % (number % keys) for number in range(count)])


# Records that run together.


@pytest.mark.parametrize("order", ["key", "none"])
def test_as_many_records_as_the_concurrency_says_are_in_progress_at_once(order: str) -> None:
    all_in = threading.Barrier(5)

    def handle(value: int) -> None:
        all_in.wait(WAIT_SECONDS)

    task = RealTask(declare(handle, order=order, concurrency=5), keyed(20, 20))
    assert task.counts == Counts(read=20)


def test_async_records_are_in_progress_at_once_too() -> None:
    waiting: list[asyncio.Future[None]] = []

    async def handle(value: int) -> None:
        waiting.append(asyncio.get_running_loop().create_future())
        if len(waiting) == 5:
            for future in waiting:
                future.set_result(None)
            waiting.clear()
        else:
            await asyncio.wait_for(waiting[-1], WAIT_SECONDS)

    task = RealTask(declare(handle, order="none", concurrency=5), keyed(20, 20))
    assert task.counts == Counts(read=20)


def test_several_batches_are_in_progress_at_once() -> None:
    all_in = threading.Barrier(3)

    def handle(values: list[int]) -> None:
        assert len(values) == 4
        all_in.wait(WAIT_SECONDS)

    task = RealTask(declare(handle, order="none", concurrency=3, batch=4), keyed(24, 24))
    assert task.counts == Counts(read=24)


@pytest.mark.parametrize("options", [{"order": "partition"}, {"order": "key", "concurrency": 1}])
def test_one_at_a_time_needs_no_thread(options: dict[str, Any]) -> None:
    threads = set()

    def handle(value: int) -> None:
        threads.add(threading.current_thread())

    Task(declare(handle, **options), keyed(100, 10))
    assert threads == {threading.current_thread()}


def test_threads_and_the_event_loop_outlive_a_task() -> None:
    async def handle_async(value: int) -> None: ...

    def handle(value: int) -> None:
        time.sleep(0.001)

    threads = []
    for _ in range(3):
        RealTask(declare(handle, order="none", concurrency=4), keyed(40, 40))
        RealTask(declare(handle_async), keyed(4, 4))
        threads.append({thread for thread in threading.enumerate() if thread.name.startswith("penstock-")})
    assert len(threads[0]) >= 5
    assert threads[0] == threads[1] == threads[2]


def test_a_record_that_takes_long_holds_up_only_its_own_key() -> None:
    others_done, finished = threading.Event(), []

    def handle(value: int, record: Record) -> None:
        if record.key == b"key-0" and value == 0:
            assert others_done.wait(WAIT_SECONDS)
        finished.append(value)
        if len(finished) == 90:
            others_done.set()

    task = RealTask(declare(handle, order="key", concurrency=2), keyed(100, 10))
    assert task.counts == Counts(read=100)
    assert finished[90:] == list(range(0, 100, 10)), "the slow one first, then the records behind it"


def test_in_the_middle_of_a_quick_bundle_too() -> None:
    """Records of a quick handler are bundled; a slow record must not delay the others of its bundle."""
    others_done, finished = threading.Event(), []

    def handle(value: int) -> None:
        if value == 5_000:
            assert others_done.wait(WAIT_SECONDS)
        finished.append(value)
        if len(finished) == 9_999:
            others_done.set()

    task = RealTask(declare(handle, order="none", concurrency=2), keyed(10_000, 10))
    assert task.counts == Counts(read=10_000)
    assert finished[-1] == 5_000


# Retries.


@pytest.mark.parametrize("order", ["key", "none"])
@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_retry_holds_its_own_lane_and_no_worker(order: str, concurrency: int) -> None:
    attempted: list[int] = []

    def handle(value: int, record: Record) -> int:
        attempted.append(value)
        if value == 0 and record.attempt == 1:
            raise OSError("away")
        return value

    retry = Retry(attempts=2, first="200ms", jitter=0)
    task = RealTask(declare(handle, to="out", order=order, concurrency=concurrency, retry=retry), keyed(9, 3))
    held = [0, 3, 6] if order == "key" else [0]
    assert sorted(attempted[: 10 - len(held)]) == sorted({*range(9)} - {*held} | {0})
    assert attempted[10 - len(held) :] == held
    assert [int(row["value"]) for row in task.rows][-len(held) :] == held
    assert task.counts == Counts(read=9, written=9)


def test_a_retry_alone_is_slept_through() -> None:
    def handle(value: int, record: Record) -> None:
        if record.attempt < 3:
            raise OSError("away")

    retry = Retry(attempts=3, first="10s", jitter=0)
    task = Task(declare(handle, order="none", concurrency=1, retry=retry), keyed(2, 2))
    assert task.slept == [10.0, 20.0]
    assert task.counts == Counts(read=2)


def test_what_fails_in_a_batch_is_tried_again_and_the_rest_is_finished() -> None:
    attempts: dict[int, int] = defaultdict(int)

    def handle(values: list[int], records: list[Record]) -> list[int | Exception]:
        for value, record in zip(values, records, strict=True):
            attempts[value] += 1
            assert record.attempt == attempts[value]
        return [OSError("away") if value % 5 == 0 and attempts[value] < 3 else value for value in values]

    retry = Retry(attempts=3, first="1ms", jitter=0)
    task = RealTask(declare(handle, to="out", order="none", concurrency=3, batch=4, retry=retry), keyed(20, 20))
    assert sorted(int(row["value"]) for row in task.rows) == list(range(20))
    assert attempts == {value: 3 if value % 5 == 0 else 1 for value in range(20)}


# Limits.


def test_no_more_than_max_in_flight_are_taken_in_before_some_are_finished() -> None:
    lock, begun, finished, most_begun = threading.Lock(), 0, 0, 0

    def handle(value: int) -> None:
        nonlocal begun, finished, most_begun
        with lock:
            begun += 1
            most_begun = max(most_begun, begun - finished)
        time.sleep(0.001 * (value % 4))
        with lock:
            finished += 1

    task = RealTask(declare(handle, order="none", concurrency=40, max_in_flight=10), source(*numbers(200)))
    assert task.counts == Counts(read=200)
    assert most_begun <= 10, "with more of them taken in, all would have begun"


def test_large_values_are_in_flight_one_at_a_time() -> None:
    lock, begun, finished, most = threading.Lock(), 0, 0, 0

    def handle(value: bytes) -> None:
        nonlocal begun, finished, most
        with lock:
            begun += 1
            most = max(most, begun - finished)
        time.sleep(0.002)
        with lock:
            finished += 1

    options = {"order": "none", "concurrency": 20, "max_in_flight_bytes": 4_000}
    task = RealTask(declare(handle, **options), *(source(bytes(10_000), first=number) for number in range(20)))
    assert task.counts == Counts(read=20)
    assert most <= 2


# Time.


def test_when_its_time_is_over_a_task_starts_nothing_more_and_the_next_slice_begins_there() -> None:
    seen: list[int] = []

    def handle(value: int) -> None:
        seen.append(value)
        time.sleep(0.002)

    task = RealTask(declare(handle, order="key", concurrency=4), keyed(400, 40), seconds=0.1)
    assert sorted(seen) == list(range(400)), "each once"
    assert task.counts == Counts(read=400)
    assert len(task.slices) > 1
    assert task.slices[-1] == Reached(400, "", 400)


def test_a_record_that_waits_long_ends_the_slice_and_keeps_its_attempts() -> None:
    attempts: list[tuple[int, int]] = []

    def handle(value: int, record: Record) -> None:
        attempts.append((value, record.attempt))
        if value == 1 and record.attempt < 3:
            raise OSError("away")

    retry = Retry(attempts=3, first="10s", jitter=0)
    task = Task(declare(handle, order="key", concurrency=1, retry=retry), keyed(6, 6))
    assert attempts == [(0, 1), (1, 1), (2, 1), (3, 1), (4, 1), (5, 1), (1, 2), (1, 3)]
    assert [each.position for each in task.slices] == [1, 1, 6]
    assert task.slices[0].waiting == {1: Wait(1, 10.0)}
    assert decode(1, task.slices[0].metadata) == [(2, 6)]
    assert task.slept == [10.0, 20.0]


# The end of a task.


@pytest.mark.parametrize("is_async", [False, True])
def test_a_halt_waits_for_what_is_in_progress_and_begins_nothing_more(is_async: bool) -> None:  # noqa: FBT001
    begun, ended, failed = [], [], threading.Event()

    def handle(value: int) -> None:
        begun.append(value)
        if value == 0:
            failed.set()
            raise ValueError("zero")
        assert failed.wait(WAIT_SECONDS)
        time.sleep(0.05)
        ended.append(value)

    async def handle_async(value: int) -> None:
        begun.append(value)
        if value == 0:
            raise ValueError("zero")
        await asyncio.sleep(0.05)
        ended.append(value)

    function: Callable[..., Any] = handle_async if is_async else handle
    with pytest.raises(HandlerError, match=r"orders\[2\]@0, attempt 1: ValueError: zero"):
        RealTask(declare(function, order="none", concurrency=3), keyed(1_000, 1_000))
    after = list(begun)
    assert sorted([0, *ended]) == sorted(begun), "none is left half done"
    assert len(begun) < 500
    RealTask(declare(lambda _: None, order="none", concurrency=3), keyed(10, 10))
    assert begun == after, "none of it runs in the next task"


def test_a_halt_ends_lanes_that_had_much_before_them() -> None:
    """A bundle has thousands of quick records, and its worker must notice that the task is over."""
    slow, begun = threading.Event(), []

    def handle(value: int, record: Record) -> None:
        if record.key == b"bad":
            assert slow.wait(WAIT_SECONDS)
            raise ValueError("bad")
        if value >= 5_000:
            slow.set()
            begun.append(value)
            time.sleep(0.01)

    records = source(*numbers(10_000), keys=[b"bad", *[b"good"] * 9_999])
    with pytest.raises(HandlerError, match="ValueError: bad"):
        RealTask(declare(handle, order="key", concurrency=2), records)
    assert len(begun) < 4_000


def test_an_async_handler_that_does_not_end_is_cancelled_after_the_drain_timeout() -> None:
    begun, cancelled = [], []

    async def handle(value: int) -> None:
        begun.append(value)
        if value == 0:
            await asyncio.sleep(0.01)
            raise ValueError("zero")
        try:
            await asyncio.sleep(WAIT_SECONDS)
        except asyncio.CancelledError:
            cancelled.append(value)
            raise

    with pytest.raises(HandlerError):
        RealTask(declare(handle, order="none", concurrency=3, drain_timeout="50ms"), keyed(9, 9))
    assert sorted(cancelled) == begun[1:]
    assert len(begun) < 9


def test_an_interruption_of_a_worker_halts_the_task() -> None:
    def handle(value: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(HandlerError, match=r"handle failed on .*: KeyboardInterrupt"):
        RealTask(declare(handle, order="none", dead_letter="dlq"), keyed(1, 1))
