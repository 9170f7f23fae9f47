"""The handler stage on Arrow batches as Spark hands them over, without Spark."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest

from penstock import NO_RETRY, App, Breaker, Record, Reject, Retry, Skip
from penstock.app import Handler
from penstock.core.counts import Counts
from penstock.core.dead_letter import PREFIX
from penstock.errors import ConfigError
from penstock.spark import run
from penstock.spark.task import HaltedTaskError, handle_task

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
Row = dict[str, Any]


def source(*values: bytes | None, first: int = 0, key: bytes | None = b"k", headers: Any = None) -> pa.RecordBatch:
    """A stretch of orders[2] in the columns of Spark's Kafka source."""
    count = len(values)
    return pa.RecordBatch.from_pydict(
        {
            "topic": pa.array(["orders"] * count, pa.string()),
            "partition": pa.array([2] * count, pa.int32()),
            "offset": pa.array(range(first, first + count), pa.int64()),
            "key": pa.array([key] * count, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "headers": pa.array([headers] * count, HEADERS),
            "timestamp": pa.array([1_700_000_000_123_000] * count, pa.timestamp("us", "UTC")),
        }
    )


def declare(function: Callable[..., Any], **options: Any) -> Handler:
    app = App("shop")
    app.consume("orders", **{"retry": Retry(attempts=1), **options})(function)
    return app.handlers[0]


class Task:
    """Runs a task at once, and remembers what it counted and how long it slept."""

    def __init__(self, handler: Handler, *batches: pa.RecordBatch) -> None:
        self.counts = Counts()
        self.slept: list[float] = []
        self.rows: list[Row] = []
        for made in handle_task(handler, batches, count=self._count, sleep=self.slept.append):
            self.rows += made.to_pylist()

    def _count(self, counts: Counts) -> None:
        self.counts += counts


def header_values(row: Row) -> dict[str, bytes | None]:
    return {header["key"]: header["value"] for header in row["headers"]}


def test_what_a_handler_returns_goes_out_under_the_key_of_its_record() -> None:
    def double(value: int) -> int:
        return value * 2

    task = Task(declare(double, to="out"), source(b"1", b"2", key=b"a"), source(b"3", first=2, key=None))
    assert task.rows == [
        {"topic": "out", "key": b"a", "value": b"2", "headers": None},
        {"topic": "out", "key": b"a", "value": b"4", "headers": None},
        {"topic": "out", "key": None, "value": b"6", "headers": None},
    ]
    assert task.counts == Counts(read=3, written=3)


def test_a_handler_sees_the_record_as_kafka_has_it() -> None:
    seen: list[Record] = []

    def look(record: Record) -> None:
        seen.append(record)

    headers = [("trace", b"1"), ("trace", b"2"), ("empty", None)]
    Task(declare(look), source(b"\xff", headers=headers), source(None, first=7, key=None))
    assert seen == [
        Record("orders", 2, 0, b"k", b"\xff", tuple(headers), 1_700_000_000_123),
        Record("orders", 2, 7, None, None, (), 1_700_000_000_123),
    ]


def test_headers_stay_with_their_own_record() -> None:
    seen: list[Sequence[object]] = []

    def look(record: Record) -> None:
        seen.append(record.headers)

    batch = pa.concat_batches([source(b"", headers=[("a", b"1")]), source(b""), source(b"", headers=[]), source(b"")])
    more = source(b"", headers=[("b", None), ("b", b"2")])
    whole = pa.concat_batches([batch, more])
    Task(declare(look), whole, whole.slice(3))
    expected: list[Sequence[object]] = [(("a", b"1"),), (), (), (), (("b", None), ("b", b"2"))]
    assert seen == expected + expected[3:]


def test_nothing_comes_of_no_records() -> None:
    def handle(value: bytes) -> None: ...

    task = Task(declare(handle), source(), source())
    assert (task.rows, task.counts) == ([], Counts())


def test_skips_and_plain_ends_are_counted_and_write_nothing() -> None:
    def handle(value: int) -> None:
        if value == 1:
            raise Skip("one")

    task = Task(declare(handle), source(b"1", b"2", b"1"))
    assert (task.rows, task.counts) == ([], Counts(read=3, skipped=2))


def test_a_rejected_record_becomes_a_dead_letter_untouched() -> None:
    def handle(value: bytes) -> None:
        raise Reject("no stock")

    headers = [("trace", b"1"), ("trace", None)]
    (row,) = (task := Task(declare(handle, dead_letter="dlq"), source(b"\x00", first=41, headers=headers))).rows
    assert (row["topic"], row["key"], row["value"]) == ("dlq", b"k", b"\x00")
    assert [(header["key"], header["value"]) for header in row["headers"][:2]] == headers
    told = header_values(row)
    assert told[f"{PREFIX}offset"] == b"41"
    assert told[f"{PREFIX}attempts"] == b"1"
    assert told[f"{PREFIX}error-message"] == b"no stock"
    assert task.counts == Counts(read=1, dead_lettered=1)


def test_a_tombstone_that_the_handler_does_not_take_is_a_dead_letter_without_a_value() -> None:
    def handle(value: dict[str, int]) -> None: ...

    (row,) = Task(declare(handle, dead_letter="dlq"), source(None, key=None)).rows
    assert (row["key"], row["value"]) == (None, None)
    assert header_values(row)[f"{PREFIX}error-type"] == b"Undecodable"


def test_a_failing_record_is_attempted_again_before_the_next_one() -> None:
    attempts: list[tuple[int, int]] = []

    def handle(value: int, record: Record) -> int:
        attempts.append((value, record.attempt))
        if value == 1 and record.attempt < 3:
            raise OSError("away")
        return value

    retry = Retry(attempts=3, first="10s", factor=3, jitter=0)
    task = Task(declare(handle, to="out", retry=retry), source(b"1", b"2"))
    assert attempts == [(1, 1), (1, 2), (1, 3), (2, 1)]
    assert task.slept == [10.0, 30.0]
    assert task.counts == Counts(read=2, written=2)


def test_after_the_last_attempt_it_is_a_dead_letter_that_says_how_many_there_were() -> None:
    def handle(value: int) -> None:
        raise OSError("away")

    task = Task(declare(handle, dead_letter="dlq", retry=Retry(attempts=4, first="1s", jitter=0)), source(b"1"))
    assert header_values(task.rows[0])[f"{PREFIX}attempts"] == b"4"
    assert task.slept == [1.0, 2.0, 4.0]


def test_the_type_of_an_error_decides_how_often_it_is_tried() -> None:
    def handle(value: int) -> None:
        raise TimeoutError if value == 1 else ValueError("never")

    retry = {ValueError: NO_RETRY, OSError: Retry(attempts=3, first="1s", jitter=0)}
    task = Task(declare(handle, dead_letter="dlq", retry=retry), source(b"1", b"2"))
    assert [header_values(row)[f"{PREFIX}attempts"] for row in task.rows] == [b"3", b"1"]
    assert task.slept == [1.0, 2.0]


def test_a_breaker_halts_the_task_before_the_next_dead_letter() -> None:
    def handle(value: int) -> None:
        if value == 0:
            raise Reject("all of them")

    handler = declare(handle, dead_letter="dlq", breaker=Breaker(share=0.75, window=4))
    fine = Task(handler, source(b"0", b"0", b"1", b"1"), source(b"0", b"0", b"1", b"1", first=4))
    assert fine.counts == Counts(read=8, dead_lettered=4)
    with pytest.raises(HaltedTaskError, match=r"3 of the last 4 records.*orders\[2\]@14: Reject: all of them"):
        Task(handler, source(b"1", b"0", first=10), source(b"0", b"0", b"0", first=12))


def test_without_a_dead_letter_topic_the_task_halts_at_the_record() -> None:
    seen: list[int] = []

    def handle(value: int) -> None:
        seen.append(value)
        if value == 5:
            raise ValueError('five] :halted "\n')

    with pytest.raises(HaltedTaskError) as caught:
        Task(declare(handle), source(b"4", b"5", b"6", first=10))
    assert seen == [4, 5]
    trace = f"Traceback\n  File x\npenstock.spark.task.HaltedTaskError: {caught.value}\n\tat org.apache.Spark\n"
    error = HaltedTaskError.find(trace)
    assert error is not None
    assert error.problem == 'Handler handle failed on orders[2]@11, attempt 1: ValueError: five] :halted "\n.'
    assert "dead_letter=" in error.hint


def test_other_errors_are_not_taken_for_a_halt() -> None:
    assert HaltedTaskError.find("ValueError: [1] :halted") is None


def test_an_async_handler_runs_in_order_on_one_loop_for_all_tasks() -> None:
    attempts: list[tuple[int, int]] = []
    loops = set()

    async def handle(value: int, record: Record) -> int:
        loops.add(asyncio.get_running_loop())
        await asyncio.sleep(0.002 if value == 1 else 0)
        attempts.append((value, record.attempt))
        if value == 1 and record.attempt == 1:
            raise OSError("away")
        return value

    handler = declare(handle, to="out", retry=Retry(attempts=2, first="1ms"))
    first = Task(handler, source(b"1", b"2"), source(b"3"))
    Task(handler, source(b"4"))
    assert attempts == [(1, 1), (1, 2), (2, 1), (3, 1), (4, 1)]
    assert [row["value"] for row in first.rows] == [b"1", b"2", b"3"]
    assert len(loops) == 1


def test_retry_topics_are_refused_with_a_word_on_what_to_do() -> None:
    app = App("shop")

    @app.consume("orders", retry_topics=["1m"])
    def handle(value: int) -> None: ...

    with pytest.raises(ConfigError, match="handle uses retry_topics") as caught:
        run(app, brokers="localhost:1", emit=print, stop=threading.Event())
    assert "--engine local" in caught.value.hint
