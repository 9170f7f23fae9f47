"""Outcomes of records on the bench."""

import asyncio
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from penstock import App, Record, Reject, Retry, Skip
from penstock.core.reports import events
from penstock.errors import HandlerError, ServerError
from penstock.testing import Bench


@dataclass
class Order:
    id: int


@dataclass
class Shipment:
    order: int


def test_a_record_becomes_an_output_under_its_key() -> None:
    app = App("shop")

    @app.consume("orders", to="shipments")
    def ship(order: Order) -> Shipment | None:
        return Shipment(order.id) if order.id else None

    bench = Bench(app)
    bench.produce("orders", Order(1), key="a")
    bench.produce("orders", {"id": 0}, key="b")
    bench.produce("orders", b'{"id": 2}', key=b"c")
    bench.produce("orders", '{"id": 3}')
    bench.run_until_idle()
    assert bench.outputs("shipments") == [Shipment(1), Shipment(2), Shipment(3)]
    assert bench.outputs("shipments", dict) == [{"order": 1}, {"order": 2}, {"order": 3}]
    assert [record.key for record in bench.records("shipments")] == [b"a", b"c", None]


def test_a_record_has_what_it_was_produced_with() -> None:
    app, seen = App("shop"), []

    @app.consume("orders")
    def keep(record: Record) -> None:
        seen.append(record)

    bench = Bench(app, partitions=3, now=datetime(2030, 5, 6, tzinfo=UTC))
    written = bench.produce("orders", None, key="k", headers={"trace": "1", "none": None}, partition=2)
    bench.advance("90s")
    bench.produce("orders", "late", headers=[("a", b"1"), ("a", b"2")], partition=2)
    bench.produce("orders", "old", partition=2, timestamp=datetime(2001, 2, 3, tzinfo=UTC))
    bench.run_until_idle()
    assert seen[0] == written == Record("orders", 2, 0, b"k", None, (("trace", b"1"), ("none", None)), 1904256000000)
    assert [record.timestamp for record in seen] == [
        datetime(2030, 5, 6, tzinfo=UTC),
        datetime(2030, 5, 6, 0, 1, 30, tzinfo=UTC),
        datetime(2001, 2, 3, tzinfo=UTC),
    ]
    assert seen[1].headers == (("a", b"1"), ("a", b"2"))


def test_a_retry_waits_for_its_time_and_not_a_moment_longer() -> None:
    app, attempts = App("shop"), []

    @app.consume("orders", retry=Retry(attempts=4, first="100ms", factor=2, jitter=0.5))
    def handle(value: str, record: Record) -> None:
        attempts.append((bench.now, record.attempt))
        if record.attempt < 4:
            raise OSError("away")

    bench = Bench(app)
    start = bench.now
    bench.produce("orders", "1")
    bench.run_until_idle()
    assert [attempt for _, attempt in attempts] == [1]
    bench.advance("99ms")
    assert [attempt for _, attempt in attempts] == [1]
    bench.advance("1ms")
    assert [attempt for _, attempt in attempts] == [1, 2]
    bench.advance("1h")
    assert [(at - start) / timedelta(milliseconds=1) for at, _ in attempts] == [0, 100, 300, 700]
    assert [event.seconds for event in bench.events_of(events.Retried)] == [0.1, 0.2, 0.4]
    assert bench.committed("orders") == {0: 1}


def test_dead_letters_say_why() -> None:
    app = App("shop")

    @app.consume("orders", dead_letter="orders.dlq", retry=Retry(attempts=2, first="1s"))
    def handle(order: Order) -> None:
        if order.id == 1:
            raise Skip("nothing to do")
        if order.id == 2:
            raise Reject("no stock")
        raise OSError("away")

    bench = Bench(app)
    for value in ('{"id": 1}', '{"id": 2}', '{"id": 3}', "{"):
        bench.produce("orders", value, key="k", headers={"trace": "7"})
    bench.run_until_idle()
    assert [letter.reason for letter in bench.dead_letters("orders.dlq")] == ["Reject: no stock"]
    bench.advance("1s")
    rejected, failed, undecodable = bench.dead_letters("orders.dlq")
    assert (rejected.key, rejected.value, rejected.headers) == (b"k", b'{"id": 2}', (("trace", b"7"),))
    assert (rejected.topic, rejected.partition, rejected.offset, rejected.group) == ("orders", 0, 1, "shop")
    assert (failed.reason, failed.attempts, failed.failed_at) == ("OSError: away", 2, bench.now)
    assert undecodable.error_type == "Undecodable"
    assert undecodable.value == b"{"
    assert [event.reason for event in bench.events_of(events.Skipped)] == ["nothing to do"]
    bench.stop()
    assert bench.committed("orders") == {0: 4}


def test_without_a_dead_letter_topic_the_error_is_raised_and_nothing_past_it_is_committed() -> None:
    app, broken = App("shop"), [True]

    @app.consume("orders", retry=Retry(attempts=1))
    def handle(value: int) -> None:
        if value == 2 and broken:
            raise ValueError("two")

    bench = Bench(app)
    for number in range(4):
        bench.produce("orders", number)
    with pytest.raises(HandlerError, match=r"handle failed on orders\[0\]@2, attempt 1: ValueError: two"):
        bench.run_until_idle()
    assert bench.committed("orders") == {0: 2}
    with pytest.raises(HandlerError):
        bench.run_until_idle()
    broken.clear()
    bench.run_until_idle()
    bench.stop()
    assert bench.committed("orders") == {0: 4}


def test_an_error_after_retries_is_raised_by_the_advance_in_which_it_happens() -> None:
    app = App("shop")

    @app.consume("orders", retry=Retry(attempts=2, first="10s"))
    def handle(value: int) -> None:
        raise ValueError("no")

    bench = Bench(app)
    start = bench.now
    bench.produce("orders", 1)
    bench.run_until_idle()
    with pytest.raises(HandlerError, match="attempt 2"):
        bench.advance("1m")
    assert bench.now == start + timedelta(seconds=10)


def test_one_handler_feeds_another_and_groups_go_their_own_ways() -> None:
    app, billed = App("shop"), []

    @app.consume("orders", to="shipments")
    def ship(order: Order) -> Shipment:
        return Shipment(order.id)

    @app.consume("shipments", to="labels")
    async def label(shipment: Shipment) -> str:
        return f"label {shipment.order}"

    @app.consume("orders", group="billing", commit="record")
    def bill(order: dict[str, int]) -> None:
        billed.append(order["id"])

    bench = Bench(app, partitions={"orders": 2})
    for number in range(4):
        bench.produce("orders", {"id": number}, key=str(number))
    bench.run_until_idle()
    assert sorted(bench.outputs("labels")) == [f"label {n}" for n in range(4)]
    assert sorted(billed) == list(range(4))
    assert sum(bench.committed("orders", group="billing").values()) == 4
    assert bench.lag("orders", group="billing") == 0
    assert bench.committed("orders", group="shop") == {}
    assert bench.lag("orders", group="shop") == 4
    bench.advance("1s")
    assert bench.lag("orders", group="shop") == bench.lag("shipments") == 0


def test_a_batch_waits_for_its_linger_and_its_poison_fails_alone() -> None:
    app, sizes = App("shop"), []

    @app.consume("orders", batch=10, linger="50ms", to="out", dead_letter="dlq", retry=Retry(attempts=1))
    def handle(orders: list[Order]) -> list[Shipment | Exception]:
        sizes.append(len(orders))
        if any(order.id == 3 for order in orders):
            raise ValueError("three")
        return [Reject("five") if order.id == 5 else Shipment(order.id) for order in orders]

    bench = Bench(app)
    for number in range(12):
        bench.produce("orders", Order(number))
    bench.run_until_idle()
    assert sizes == [10] + [1] * 10
    assert bench.outputs("out") == [Shipment(n) for n in (0, 1, 2, 4, 6, 7, 8, 9)]
    assert [letter.reason for letter in bench.dead_letters("dlq")] == ["ValueError: three", "Reject: five"]
    bench.advance("50ms")
    assert sizes[11:] == [2]


def test_a_handler_for_processes_runs_in_this_one() -> None:
    app = App("shop")

    @app.consume("orders", to="out", workers="process")
    def handle(value: int) -> int:
        return value * 2

    bench = Bench(app)
    bench.produce("orders", 21)
    bench.run_until_idle()
    assert bench.outputs("out") == [42]


def test_a_record_is_finished_when_it_is_acknowledged() -> None:
    app, waiting = App("shop"), []

    @app.consume("orders", commit="manual", commit_every="1s")
    def handle(record: Record) -> None:
        waiting.append(record)

    bench = Bench(app)
    for number in range(3):
        bench.produce("orders", number)
    bench.advance("1s")
    assert bench.committed("orders") == {0: 0}
    waiting[0].ack()
    waiting[2].ack()
    bench.advance("1s")
    assert bench.committed("orders") == {0: 1}
    bench.stop()
    bench.run_until_idle()
    assert [record.offset for record in waiting[3:]] == [1], "the offset map contains the third"


def test_a_dead_letter_that_cannot_be_written_stops_the_app_and_moves_no_commit_point() -> None:
    app = App("shop")

    @app.consume("orders", dead_letter="orders.dlq")
    def handle(value: int) -> None:
        if value == 1:
            raise Reject("no")

    bench = Bench(app)
    bench.fail_produce("orders.dlq")
    for number in range(3):
        bench.produce("orders", number)
    with pytest.raises(ServerError, match=r"result of orders\[0\]@1 to topic orders\.dlq"):
        bench.run_until_idle()
    assert bench.committed("orders") == {0: 1}
    bench.clear_faults()
    bench.run_until_idle()
    bench.stop()
    assert bench.committed("orders") == {0: 3}
    assert [letter.offset for letter in bench.dead_letters("orders.dlq")] == [1]


def test_an_output_that_is_too_large_is_its_record_s_failure() -> None:
    app = App("shop")

    @app.consume("orders", to="out", dead_letter="orders.dlq")
    def handle(value: int) -> int:
        return value

    bench = Bench(app)
    bench.fail_produce("out", too_large=True)
    bench.produce("orders", 1)
    bench.run_until_idle()
    assert [letter.error_type for letter in bench.dead_letters("orders.dlq")] == ["OutputRefused"]
    assert bench.outputs("out") == []


def test_outputs_without_a_type_are_bytes() -> None:
    app = App("shop")

    @app.consume("orders", to="out")
    def handle(value: int):  # type: ignore[no-untyped-def]  # noqa: ANN202
        return [value]

    @app.consume("orders", to="both", group="one")
    def one(value: int) -> int:
        return value

    @app.consume("orders", to="both", group="two")
    def two(value: int) -> str:
        return str(value)

    @app.consume("orders", to="any", group="three")
    def three(value: int) -> Any:
        return value

    @app.consume("orders", to="some", group="four")
    def four(value: int) -> object:
        return value

    bench = Bench(app)
    bench.produce("orders", 1)
    bench.run_until_idle()
    assert bench.outputs("out") == [b"[1]"]
    assert bench.outputs("some") == [b"1"]
    assert bench.outputs("both") == [b"1", b"1"]
    assert bench.outputs("any") == [b"1"]
    assert bench.outputs("any", int) == [1]


def test_a_failure_shows_its_traceback_in_events_dead_letters_and_the_error_that_stops_the_app() -> None:
    app = App("shop")

    @app.consume("orders", dead_letter="dlq", retry=Retry(attempts=2, first="1s"))
    def ship(order: int) -> None:
        raise TimeoutError

    @app.consume("returns", retry=Retry(attempts=1))
    async def take_back(order: int) -> None:
        raise LookupError("no such order")

    bench = Bench(app)
    bench.produce("orders", 1)
    bench.advance("5s")
    (retried,), (buried,), (letter,) = (
        bench.events_of(events.Retried),
        bench.events_of(events.DeadLettered),
        bench.dead_letters("dlq"),
    )
    assert retried.traceback == buried.traceback == letter.traceback
    assert letter.traceback.splitlines()[-2:] == ["    raise TimeoutError", "TimeoutError"]
    assert letter.error_message.startswith("(no message) raised in ship at test_outcomes.py:")
    bench.produce("returns", 1)
    with pytest.raises(HandlerError) as stopped:
        bench.run_until_idle()
    assert "in take_back" in stopped.value.traceback
    assert stopped.value.__notes__ == [stopped.value.traceback]
    assert bench.events_of(events.Error)[-1].traceback == stopped.value.traceback


def test_an_async_handler_that_cancels_itself_is_retried_and_then_a_dead_letter() -> None:
    app = App("shop")

    async def leave() -> None:
        sys.exit(1)

    @app.consume("orders", dead_letter="dlq", order="none", retry=Retry(attempts=2, first="1s"))
    async def ship(order: int) -> None:
        if order == 1:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(1)
        if order == 2:
            await asyncio.create_task(leave())

    bench = Bench(app)
    for order in range(4):
        bench.produce("orders", order)
    bench.advance("10s")
    assert {(letter.value, letter.error_type, letter.attempts) for letter in bench.dead_letters("dlq")} == {
        (b"1", "asyncio.exceptions.CancelledError", 2),
        (b"2", "SystemExit", 2),
    }
    assert bench.lag("orders") == 0


def test_exceptions_of_test_runners_in_a_handler_reach_the_test() -> None:
    app = App("shop")

    @app.consume("orders", dead_letter="dlq")
    def ship(order: int) -> None:
        pytest.fail("it is not to be called")

    bench = Bench(app)
    bench.produce("orders", 1)
    with pytest.raises(pytest.fail.Exception):
        bench.run_until_idle()
