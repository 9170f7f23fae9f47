"""Several records of a task at once: what runs beside what, in which order, and within which bounds."""

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest

from penstock import Record, Retry
from penstock.core.reports.record_counts import Counts
from penstock.spark.task import HaltedTaskError, handle_task
from spark_tasks import RealTask, Task, declare, source

WAIT_SECONDS = 120.0


def numbers(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


def keyed(count: int, keys: int) -> pa.RecordBatch:
    return source(*numbers(count), keys=[b"key-%d" % (number % keys) for number in range(count)])


# Who runs beside whom.


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
    assert finished[90:] == list(range(0, 100, 10)), "the slow one first, then what waited behind it"


def test_in_the_middle_of_a_quick_bundle_too() -> None:
    """Once a handler is known to be quick its records travel together; the slow one must not take them along."""
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


# Bounds.


def test_no_more_than_max_in_flight_are_taken_in_before_some_are_finished() -> None:
    lock, taken, begun, finished, most_taken, most_begun = threading.Lock(), 0, 0, 0, 0, 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal taken
        for first in range(0, 200, 20):
            taken += 20
            yield source(*numbers(20), first=first)

    def handle(value: int) -> None:
        nonlocal begun, finished, most_taken, most_begun
        with lock:
            begun += 1
            most_taken, most_begun = max(most_taken, taken - finished), max(most_begun, begun - finished)
        time.sleep(0.001 * (value % 4))
        with lock:
            finished += 1

    task = RealTask(declare(handle, order="none", concurrency=40, max_in_flight=10), from_=batches())
    assert task.counts == Counts(read=200)
    assert most_begun <= 10, "with more of them taken in, all would have begun"
    assert most_taken <= 10 + 20, "what is in flight, and the one batch that is not used up"


def test_rows_come_out_before_the_input_has_ended() -> None:
    taken = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal taken
        for first in range(100):
            taken += 1
            yield source(b"1", first=first)

    def handle(value: int) -> bytes:
        return b"x" * 1_000_000

    with closing(handle_task(declare(handle, to="out"), batches(), count=lambda _: None)) as rows:  # type: ignore[type-var]
        assert len(next(rows)) < 20
        assert taken < 20


# Ends.


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
    with pytest.raises(HaltedTaskError, match=r"orders\[2\]@0, attempt 1: ValueError: zero"):
        RealTask(declare(function, order="none", concurrency=3), keyed(1_000, 1_000))
    after = list(begun)
    assert sorted([0, *ended]) == sorted(begun), "none is left half done"
    assert len(begun) < 500
    RealTask(declare(lambda _: None, order="none", concurrency=3), keyed(10, 10))
    assert begun == after, "nothing of it runs into the next task"


def test_a_halt_ends_lanes_that_had_much_before_them() -> None:
    """Quick records travel by the thousand, and a worker that has them must hear that it is over."""
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
    with pytest.raises(HaltedTaskError, match="ValueError: bad"):
        RealTask(declare(handle, order="key", concurrency=2), records)
    assert len(begun) < 4_000


def test_whoever_takes_no_more_rows_finds_nothing_in_progress() -> None:
    begun, ended = [], []

    def handle(value: int) -> bytes:
        begun.append(value)
        time.sleep(0.002)
        ended.append(value)
        return b"x" * 1_000_000

    rows = handle_task(declare(handle, to="out", order="none", concurrency=4), [keyed(1_000, 10)], count=lambda _: None)
    next(rows)
    rows.close()  # type: ignore[attr-defined]
    assert sorted(begun) == sorted(ended)
    assert len(begun) < 1_000


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

    with pytest.raises(HaltedTaskError):
        RealTask(declare(handle, order="none", concurrency=3, drain_timeout="50ms"), keyed(9, 9))
    assert sorted(cancelled) == begun[1:]
    assert len(begun) < 9


def test_an_interruption_of_a_worker_halts_the_task() -> None:
    def handle(value: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(HaltedTaskError, match=r"handle failed on .*: KeyboardInterrupt"):
        RealTask(declare(handle, order="none", dead_letter="dlq"), keyed(1, 1))
