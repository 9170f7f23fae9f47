"""Duplicates on the bench: ``dedupe=by(...)``."""

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from penstock import App, Record, Reject, Retry, Skip, by
from penstock.core.reports import events
from penstock.errors import ConfigError
from penstock.testing import Bench


@dataclass
class Order:
    id: int


def test_a_duplicate_is_finished_without_a_call_until_its_time_is_over() -> None:
    app, seen = App("shop"), []

    @app.consume("orders", dedupe=by("id", for_="1h"), to="out")
    def handle(order: Order, record: Record) -> int:
        seen.append((order.id, record.offset))
        return order.id

    bench = Bench(app)
    for number in (1, 2, 1):
        bench.produce("orders", {"id": number})
    bench.advance("59m")
    bench.produce("orders", {"id": 2})
    bench.run_until_idle()
    assert seen == [(1, 0), (2, 1)]
    assert bench.outputs("out") == [1, 2]
    duplicates = bench.events_of(events.Duplicate)
    assert [(each.offset, each.reason) for each in duplicates] == [
        (2, "its id was handled at orders[0]@0"),
        (3, "its id was handled at orders[0]@1"),
    ]
    assert [each.offset for each in bench.events_of(events.Finished)] == [0, 1]
    bench.advance("2m")
    bench.produce("orders", {"id": 1})
    bench.advance("2s")
    assert seen[2:] == [(1, 4)]
    assert bench.lag("orders") == 0


@pytest.mark.parametrize("how", [by.key(for_="1d"), by.header("id", for_="1d")])
def test_a_key_or_a_header_can_be_the_id_and_records_without_one_are_all_handled(how: Any) -> None:
    app, seen = App("shop"), []

    @app.consume("orders", dedupe=how)
    def handle(value: int) -> None:
        seen.append(value)

    bench = Bench(app)
    for value, number in enumerate(("a", "b", "a", None, None)):
        headers = {} if number is None else {"id": number}
        bench.produce("orders", value, key=number, headers=headers)
    bench.run_until_idle()
    assert seen == [0, 1, 3, 4]


def test_a_record_that_is_read_again_is_no_duplicate_of_itself() -> None:
    app, seen = App("shop"), []

    @app.consume("orders", dedupe=by("id", for_="1d"))
    def handle(order: Order, record: Record) -> None:
        seen.append(record.offset)

    bench = Bench(app)
    bench.produce("orders", {"id": 1})
    bench.run_until_idle()
    bench.crash()  # before its commit
    bench.produce("orders", {"id": 1})
    bench.advance("2s")
    assert seen == [0, 0], "the second run knows the id, of the record itself"
    assert [each.offset for each in bench.events_of(events.Duplicate)] == [1]


def test_only_an_id_that_was_handled_makes_duplicates() -> None:
    app, seen = App("shop"), []

    @app.consume("orders", dedupe=by("id", for_="1d"), dead_letter="dlq", retry=Retry(attempts=2, first="1m"))
    def handle(order: Order, record: Record) -> None:
        seen.append((order.id, record.offset, record.attempt))
        if record.offset == 0:
            raise Reject("broken")
        if record.offset == 1 and record.attempt == 1:
            raise OSError("away")
        if record.offset == 3:
            raise Skip("handled, too")

    bench = Bench(app)
    for number in (1, 2, 1, 3, 3, 2):
        bench.produce("orders", {"id": number})
    bench.advance("5m")
    assert seen == [(1, 0, 1), (2, 1, 1), (2, 1, 2), (1, 2, 1), (3, 3, 1)]


def test_of_two_records_with_one_id_the_second_waits_for_the_first() -> None:
    app, seen = App("shop"), []

    @app.consume("orders", dedupe=by("id", for_="1d"), order="none", dead_letter="dlq", retry=Retry(attempts=1))
    async def handle(order: Order, record: Record) -> None:
        seen.append(record.offset)
        await asyncio.sleep(5)
        if record.offset == 0 and order.id == 1:
            raise ValueError("no")

    bench = Bench(app)
    bench.produce("orders", {"id": 1})
    bench.produce("orders", {"id": 1})
    bench.produce("orders", {"id": 2})
    bench.produce("orders", {"id": 2})
    bench.advance("1s")
    assert seen == [0, 2]
    bench.advance("20s")
    assert seen == [0, 2, 1], "after a failure, the second is handled; after a success, it is a duplicate"
    assert [each.offset for each in bench.events_of(events.Duplicate)] == [3]


def test_what_cannot_be_decoded_is_still_a_dead_letter() -> None:
    app = App("shop")

    @app.consume("orders", dedupe=by("id", for_="1d"), dead_letter="dlq")
    def handle(order: Order) -> None: ...

    bench = Bench(app)
    bench.produce("orders", b"{")
    bench.run_until_idle()
    assert [each.error_type for each in bench.dead_letters("dlq")] == ["Undecodable"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"dedupe": "id"}, "does not say what identifies a record"),
        ({"dedupe": by("id", for_="1d"), "batch": 5}, "does not work with batch="),
        ({"dedupe": by("id", for_="1d"), "workers": "process"}, 'does not work with workers="process"'),
        ({"dedupe": by("id", for_="1d"), "commit": "manual"}, 'does not work with commit="manual"'),
    ],
)
def test_what_cannot_work_is_refused_with_the_reason(options: dict[str, Any], says: str) -> None:
    def handle(orders: list[Order], records: list[Record]) -> None: ...

    def handle_one(order: Order, record: Record) -> None: ...

    with pytest.raises(ConfigError, match=says):
        App("shop").consume("orders", **options)(handle if "batch" in options else handle_one)


def test_a_field_needs_a_value() -> None:
    def handle(record: Record) -> None: ...

    with pytest.raises(ConfigError, match="the handler takes no value"):
        App("shop").consume("orders", dedupe=by("id", for_="1d"))(handle)


@pytest.mark.parametrize(("field", "window"), [("", "1d"), (3, "1d"), ("id", "0s"), ("id", "soon")])
def test_by_says_what_is_wrong(field: Any, window: str) -> None:
    with pytest.raises(ConfigError):
        by(field, for_=window)


def test_each_route_has_ids_of_its_own_and_only_those_that_ask_for_it() -> None:
    app, seen = App("shop"), []

    @app.consume("orders", when={"type": "counted"})
    def count(value: int) -> None:
        seen.append(("count", value))

    @app.consume("orders", when={"type": "created"}, dedupe=by.key(for_="1h"))
    def create(value: int) -> None:
        seen.append(("create", value))

    @app.consume("orders", dedupe=by.key(for_="1h"))
    def rest(value: int) -> None:
        seen.append(("rest", value))

    bench = Bench(app)
    for value, kind in enumerate(("counted", "counted", "created", "paid", "created", "paid")):
        bench.produce("orders", value, key="a", headers={"type": kind})
    bench.run_until_idle()
    assert seen == [("count", 0), ("count", 1), ("create", 2), ("rest", 3)]
    assert [(each.offset, each.handler) for each in bench.events_of(events.Duplicate)] == [(4, "create"), (5, "rest")]
