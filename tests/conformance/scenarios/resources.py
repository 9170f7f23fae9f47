"""Resources and middleware."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from conformance.drivers import Driver
from conformance.scenarios.declaring import header, scenario
from penstock import App, Record, Reject, Skip
from penstock.errors import CallbackError


@scenario
def a_handler_gets_its_resources_and_its_middleware(driver: Driver) -> None:
    source, out, dlq, app, opened = driver.topic(2), driver.topic(), driver.topic(), App(driver.group()), driver.notes()

    @app.resource
    def prices() -> Iterator[dict[int, int]]:
        opened.add("prices")
        yield {1: 10, 2: 20}

    @app.resource(scope="worker")
    def shop(prices: dict[int, int]) -> dict[str, Any]:
        return {"prices": prices}

    @app.around
    def first(record: Record, call: Any) -> Any:
        if call.arguments["order"] == 3:
            raise Skip("three")
        return call()

    @app.around
    def second(record: Record, call: Any, prices: dict[int, int]) -> Any:
        if call.arguments["order"] not in prices:
            raise Reject("no price")
        return call() + record.partition

    @app.consume(source, to=out, dead_letter=dlq)
    def handle(order: int, shop: dict[str, Any]) -> int:
        found: int = shop["prices"][order]
        return found

    stage = driver.stage(app)
    stage.produce(source, 1, 2, 3, partition=0)
    stage.produce(source, 1, 4, partition=1)
    stage.catch_up()
    assert sorted(int(record.value or b"") for record in stage.records(out)) == [10, 11, 20]
    assert [header(record, "error-message") for record in stage.records(dlq)] == ["no price"]
    assert stage.committed(source) == {0: 3, 1: 2}
    assert set(opened.read()) == {"prices"}


@scenario
def async_handlers_have_async_resources_and_middleware(driver: Driver) -> None:
    source, out, app = driver.topic(), driver.topic(), App(driver.group())

    @app.resource
    async def pool() -> AsyncIterator[int]:
        yield 100

    @app.resource
    async def rate(pool: int) -> int:
        return pool + 1

    @app.around
    async def double(record: Record, call: Any) -> Any:
        return 2 * await call(order=call.arguments["order"] + 1)

    @app.consume(source, to=out)
    async def handle(order: int, rate: int, record: Record) -> int:
        return order + rate + record.offset

    stage = driver.stage(app)
    stage.produce(source, 1, 2)
    stage.catch_up()
    assert [record.value for record in stage.records(out)] == [b"206", b"210"]


@scenario
def the_resource_of_a_partition_has_its_records_only(driver: Driver) -> None:
    source, out, app = driver.topic(2), driver.topic(), App(driver.group())

    @app.resource(scope="partition")
    def known() -> Iterator[set[int]]:
        yield set()

    @app.consume(source, to=out)
    def handle(order: int, known: set[int], record: Record) -> list[int]:
        known.add(order)
        return [record.partition, *sorted(known)]

    stage = driver.stage(app)
    stage.produce(source, 1, 2, partition=0)
    stage.produce(source, 3, 4, partition=1)
    stage.catch_up()
    found = sorted(record.value or b"" for record in stage.records(out))
    assert found == [b"[0,1,2]", b"[0,1]", b"[1,3,4]", b"[1,3]"]


@scenario
def a_batch_has_resources_and_a_middleware_with_its_records(driver: Driver) -> None:
    source, out, app = driver.topic(), driver.topic(), App(driver.group())

    @app.resource
    def factor() -> int:
        return 3

    @app.around
    def look(records: list[Record], call: Any) -> Any:
        return [result + record.offset for result, record in zip(call(), records, strict=True)]

    @app.consume(source, to=out, batch=10)
    def handle(orders: list[int], factor: int) -> list[int]:
        return [order * factor for order in orders]

    stage = driver.stage(app)
    stage.produce(source, 1, 2, 3)
    stage.catch_up()
    assert [record.value for record in stage.records(out)] == [b"3", b"7", b"11"]


@scenario
def a_resource_that_raises_stops_the_app_and_nothing_is_finished(driver: Driver) -> None:
    source, app, seen = driver.topic(), App(driver.group()), driver.notes()

    @app.resource
    def broken() -> int:
        raise ValueError("no connection")

    @app.consume(source)
    def handle(order: int, broken: int) -> None:
        seen.add(order)

    stage = driver.stage(app)
    stage.produce(source, 1, 2)
    with pytest.raises(CallbackError, match="The resource broken raised ValueError: no connection") as raised:
        stage.catch_up()
    assert "in broken" in raised.value.traceback
    assert seen.read() == []
    assert stage.committed(source) in ({}, {0: 0})
