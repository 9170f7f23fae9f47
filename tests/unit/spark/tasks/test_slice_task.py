"""The results of a task for its records, without Spark and without a broker."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict

import pytest
from confluent_kafka import KafkaError
from pyspark import cloudpickle

from penstock import NO_RETRY, App, Avro, Breaker, Record, Reject, Retry, Skip
from penstock.core.failures.dead_letter_headers import DeadLetterHeader
from penstock.core.failures.outcome import DependencyUnavailable, ProducerRecord
from penstock.core.reports import events
from penstock.core.reports.record_counts import Counts
from penstock.core.scheduling.effects import Attempt, Send
from penstock.core.scheduling.lanes import AnyRecord, Epoch
from penstock.errors import HandlerError
from penstock.kafka import MESSAGES
from penstock.kafka.error_codes import Code
from penstock.spark.driver.packing import pack
from penstock.spark.tasks.outputs import Refusals
from spark_tasks import MemoryOutputs, RealTask, Row, Task, declare, source


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

    batch = source(b"", headers=[("a", b"1")]) + source(b"", first=1) + source(b"", first=2, headers=[])
    more = source(b"", first=3, headers=[("b", None), ("b", b"2")])
    Task(declare(look), batch, more)
    assert seen == [(("a", b"1"),), (), (), (("b", None), ("b", b"2"))]


def test_a_task_without_records_has_no_outcomes() -> None:
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
    assert told[DeadLetterHeader.OFFSET] == b"41"
    assert told[DeadLetterHeader.ATTEMPTS] == b"1"
    assert told[DeadLetterHeader.ERROR_MESSAGE] == b"no stock"
    assert task.counts == Counts(read=1, dead_lettered=1)


def test_a_tombstone_that_the_handler_does_not_take_is_a_dead_letter_without_a_value() -> None:
    def handle(value: dict[str, int]) -> None: ...

    (row,) = Task(declare(handle, dead_letter="dlq"), source(None, key=None)).rows
    assert (row["key"], row["value"]) == (None, None)
    assert header_values(row)[DeadLetterHeader.ERROR_TYPE] == b"Undecodable"


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
    assert header_values(task.rows[0])[DeadLetterHeader.ATTEMPTS] == b"4"
    assert task.slept == [1.0, 2.0, 4.0]


def test_the_type_of_an_error_decides_how_often_it_is_tried() -> None:
    def handle(value: int) -> None:
        raise TimeoutError if value == 1 else ValueError("never")

    retry = {ValueError: NO_RETRY, OSError: Retry(attempts=3, first="1s", jitter=0)}
    task = Task(declare(handle, dead_letter="dlq", retry=retry), source(b"1", b"2"))
    assert [header_values(row)[DeadLetterHeader.ATTEMPTS] for row in task.rows] == [b"3", b"1"]
    assert task.slept == [1.0, 2.0]


def test_a_breaker_halts_the_task_before_the_next_dead_letter() -> None:
    def handle(value: int) -> None:
        if value == 0:
            raise Reject("all of them")

    handler = declare(handle, dead_letter="dlq", breaker=Breaker(share=0.75, window=4))
    fine = Task(handler, source(b"0", b"0", b"1", b"1"), source(b"0", b"0", b"1", b"1", first=4))
    assert fine.counts == Counts(read=8, dead_lettered=4)
    with pytest.raises(HandlerError, match=r"3 of the last 4 records.*orders\[2\]@14: Reject: all of them"):
        Task(handler, source(b"1", b"0", first=10), source(b"0", b"0", b"0", first=12))


def test_without_a_dead_letter_topic_the_task_halts_at_the_record() -> None:
    seen: list[int] = []

    def handle(value: int) -> None:
        seen.append(value)
        if value == 5:
            raise ValueError('five] :halted "\n')

    with pytest.raises(HandlerError) as caught:
        Task(declare(handle), source(b"4", b"5", b"6", first=10))
    assert seen == [4, 5]
    error = caught.value
    assert error.problem == 'Handler handle failed on orders[2]@11, attempt 1: ValueError: five] :halted "\n.'
    assert "dead_letter=" in error.hint
    assert "in handle" in error.traceback


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
    first = RealTask(handler, source(b"1", b"2"), source(b"3", first=2))
    RealTask(handler, source(b"4"))
    assert attempts == [(1, 1), (1, 2), (2, 1), (3, 1), (4, 1)]
    assert [row["value"] for row in first.rows] == [b"1", b"2", b"3"]
    assert len(loops) == 1


def test_while_a_registry_is_unavailable_a_task_waits_and_counts_no_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    class Codec:
        left = 50

        def decode(self, data: bytes, _headers: Any) -> bytes:
            self.left -= 1
            if self.left >= 0:
                raise DependencyUnavailable("the registry does not answer", 3.0)
            return data

        def reader(self, raw_of: Any, headers_of: Any, **_options: Any) -> Any:
            return lambda record: self.decode(raw_of(record), headers_of(record))

    codec = Codec()
    rows = replace(MESSAGES, codec_of=lambda _format, **_: codec)  # type: ignore[arg-type]
    monkeypatch.setattr("penstock.spark.tasks.workers.MESSAGES", rows)

    def handle(value: Any, record: Record) -> int:
        return record.attempt

    task = Task(declare(handle, value=Avro(), to="out", dead_letter="dlq", retry=NO_RETRY), source(b"x"))
    assert [row["value"] for row in task.rows] == [b"1"]
    assert len(task.slept) == 50
    assert all(3.0 <= seconds <= 3.6 for seconds in task.slept)


def test_records_are_decoded_by_formats_in_the_task_and_encoded_with_their_headers() -> None:
    schema = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}]}
    app = App("shop", registry="mock://spark-task")

    @app.consume(
        "orders", value=Avro(schema, schema_id=None), key=str, to="out", dead_letter="dlq",
        to_value=Avro(schema, register=True, schema_id="headers"),
    )  # fmt: skip
    def handle(order: dict[str, int], key: str) -> dict[str, int]:
        return {"id": order["id"] + len(key)}

    done, dead = Task(app.handlers[0], source(b"\x0e", b"")).rows
    assert (done["topic"], done["value"]) == ("out", b"\x10")
    assert header_values(done)["__value_schema_id"] is not None
    assert (dead["topic"], dead["value"]) == ("dlq", b"")
    assert header_values(dead)[DeadLetterHeader.ERROR_MESSAGE] == b"expected int, but the value ends there - at `$.id`"


def test_classes_that_have_no_module_travel_to_workers() -> None:
    @dataclass
    class Item:
        sku: str

    class Order(TypedDict):
        items: list[Item]

    def handle(order: Order, key: Item) -> None: ...

    handle.__annotations__.update(order=Order, key=Item)
    packed = pack(declare(handle), "localhost:9092", is_local=True, per_record=False)
    there = cloudpickle.loads(packed).handler
    assert there.signature.parts == ("value", "key")


class RefusingOutputs(MemoryOutputs):
    """The broker refuses one value, which the task learns at the end of the slice."""

    def __init__(self, refused: bytes) -> None:
        super().__init__()
        self._value = refused
        self._refused: Refusals = []

    def write(self, epoch: Epoch, records: list[AnyRecord], outputs: list[ProducerRecord]) -> None:
        for record, out in zip(records, outputs, strict=True):
            if out.value == self._value and out.topic != "dlq":
                tried = Attempt(epoch, record, MESSAGES.offset_of(record), 1)
                self._refused.append((Send(tried, out), KafkaError(Code.MSG_SIZE_TOO_LARGE)))
            else:
                super().write(epoch, [record], [out])

    def flush(self) -> Refusals:
        refused, self._refused = self._refused, []
        return refused


def test_an_output_that_is_refused_at_the_end_counts_as_the_dead_letter_of_its_route() -> None:
    app = App("shop")

    @app.consume("orders", when={"type": "a"}, to="out", dead_letter="dlq")
    def first(value: int) -> int:
        return value

    @app.consume("orders", when={"type": "b"}, to="out", dead_letter="dlq")
    def second(value: int) -> int:
        return value

    batch = source(b"1", b"2", headers=[("type", b"a")]) + source(b"3", b"2", first=2, headers=[("type", b"b")])
    task = Task(app.handlers[0], batch, outputs=RefusingOutputs(b"2"))
    expected = Counts(read=2, written=1, dead_lettered=1)
    assert task.route_counts == {"first": expected, "second": expected}
    assert task.counts == expected + expected
    letters = [event for event in task.events if isinstance(event, events.DeadLettered)]
    assert [(event.offset, event.handler) for event in letters] == [(1, "first"), (3, "second")]
