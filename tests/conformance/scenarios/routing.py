"""Several handlers of one topic and group: each record goes to the first whose condition holds."""

import asyncio
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from conformance.drivers import Driver, counts
from conformance.scenarios.declaring import header, scenario
from kafka_helpers import of_kind
from penstock import App, Later, Out, Record, Retry, key_like
from penstock.core.reports import events
from penstock.core.reports.record_counts import Counts
from penstock.errors import HandlerError


class Created(msgspec.Struct, tag="created"):
    id: int


class Cancelled(msgspec.Struct, tag="cancelled"):
    id: int


def route_counts(reported: list[events.Event]) -> dict[str, Counts]:
    """The last counts of each route."""
    return {
        event.handler: Counts(event.read, event.written, event.dead_lettered, event.skipped)
        for event in of_kind(reported, events.RouteProgressed)
    }


@scenario
def headers_choose_the_handler_and_reports_name_it(driver: Driver) -> None:
    source, out, dlq, app, seen = driver.topic(), driver.topic(), driver.topic(), App(driver.group()), driver.notes()

    @app.consume(source, when={"type": "created"}, to=out, dead_letter=dlq)
    def create(value: int) -> dict[str, int]:
        seen.add(("create", value))
        return {"id": value}

    @app.consume(source, when={"type": ["cancelled", "expired"]}, dead_letter=dlq, retry=Retry(attempts=1))
    def cancel(value: int) -> None:
        seen.add(("cancel", value))
        raise OSError("away")

    @app.consume(source, when={"trace": True}, dead_letter=dlq)
    def trace(record: Record) -> None:
        seen.add(("trace", record.value))

    stage = driver.stage(app)
    for number, kind in enumerate((b"created", b"cancelled", b"refunded", b"expired", b"created")):
        stage.produce(source, number, headers={"type": kind})
    stage.produce(source, 5, headers={"trace": b"yes"})
    reported = stage.catch_up()
    assert seen.read() == [("create", 0), ("cancel", 1), ("cancel", 3), ("create", 4), ("trace", b"5")]
    assert [record.value for record in stage.records(out)] == [b'{"id":0}', b'{"id":4}']
    assert [(record.value, header(record, "error-type")) for record in stage.records(dlq)] == [
        (b"1", "OSError"),
        (b"2", "Unrouted"),
        (b"3", "OSError"),
    ]
    assert "header type is refunded" in header(stage.records(dlq)[1], "error-message")
    assert stage.committed(source) == {0: 6}
    assert counts(reported) == (6, 2, 3, 0)
    assert route_counts(reported) == {
        "create": Counts(2, 2, 0, 0),
        "cancel": Counts(2, 0, 2, 0),
        "trace": Counts(1, 0, 0, 0),
    }
    (stopped,) = of_kind(reported, events.Stopped)
    assert stopped.handler == "create+cancel+trace"
    letters = {event.offset: event.handler for event in of_kind(reported, events.DeadLettered)}
    assert letters == {1: "cancel", 2: "create+cancel+trace", 3: "cancel"}
    finished = {event.offset: event.handler for event in of_kind(reported, events.Finished)}
    assert finished == {0: "create", 4: "create", 5: "trace"}


@scenario
def a_key_keeps_its_order_across_routes(driver: Driver) -> None:
    source, app, seen = driver.topic(2), App(driver.group()), driver.notes()
    options: dict[str, Any] = {"order": "key", "concurrency": 8}

    @app.consume(source, when={"type": "slow"}, **options)
    async def slow(value: int, record: Record) -> None:
        await asyncio.sleep(0.02)
        seen.add((record.key, value))

    @app.consume(source, **options)
    async def quick(value: int, record: Record) -> None:
        seen.add((record.key, value))

    stage = driver.stage(app)
    for number in range(40):
        kind = b"slow" if number % 3 == 0 else b"quick"
        stage.produce(source, number, key=b"key-%d" % (number % 5), headers={"type": kind})
    stage.catch_up()
    noted = seen.read()
    for key in {key for key, _ in noted}:
        values = [value for noted_key, value in noted if noted_key == key]
        assert values == sorted(values)
    assert sorted(value for _, value in noted) == list(range(40))


@scenario
def keys_and_functions_choose_the_handler_before_decoding(driver: Driver) -> None:
    source, app, seen = driver.topic(), App(driver.group()), driver.notes()

    @app.consume(source, when=key_like("eu-*"))
    def europe(value: int) -> None:
        seen.add(("europe", value))

    @app.consume(source, when=lambda record: record.value == b"no number")
    def text(value: str) -> None:
        seen.add(("text", value))

    @app.consume(source)
    def rest(value: int) -> None:
        seen.add(("rest", value))

    stage = driver.stage(app)
    stage.produce(source, 1, key=b"eu-1")
    stage.produce(source, b"no number", key=b"us-1")
    stage.produce(source, 2, key=b"us-1")
    reported = stage.catch_up()
    assert seen.read() == [("europe", 1), ("text", "no number"), ("rest", 2)]
    assert counts(reported) == (3, 0, 0, 0)


@scenario
def a_record_that_no_handler_takes_stops_the_app_without_a_dead_letter_topic(driver: Driver) -> None:
    source, app, seen = driver.topic(), App(driver.group()), driver.notes()

    @app.consume(source, when={"type": "created"})
    def create(value: int) -> None:
        seen.add(value)

    stage = driver.stage(app)
    stage.produce(source, 1, headers={"type": b"created"})
    stage.produce(source, 2, headers={"type": b"refunded"})
    with pytest.raises(HandlerError, match="no handler takes this record") as raised:
        stage.catch_up()
    assert "(create): header type is refunded" in raised.value.problem
    assert "Add a handler without when=" in raised.value.hint
    assert seen.read() == [1]
    assert stage.committed(source) == {0: 1}


@scenario
def a_record_that_no_handler_takes_is_skipped_where_that_is_said(driver: Driver) -> None:
    source, app, seen = driver.topic(), App(driver.group()), driver.notes()

    @app.consume(source, when={"type": "created"}, otherwise="skip")
    def create(value: int) -> None:
        seen.add(value)

    stage = driver.stage(app)
    stage.produce(source, 1, headers={"type": b"refunded"})
    stage.produce(source, 2, headers={"type": b"created"})
    assert counts(stage.catch_up()) == (2, 0, 0, 1)
    assert seen.read() == [2]
    assert stage.committed(source) == {0: 2}


@scenario
def a_condition_that_raises_is_retried_and_dead_lettered_and_others_go_on(driver: Driver) -> None:
    source, dlq, app, seen = driver.topic(), driver.topic(), App(driver.group()), driver.notes()

    def breaks(record: Record) -> bool:
        if record.value == b"1":
            raise OSError("away")
        return record.value == b"2"

    @app.consume(source, when=breaks, dead_letter=dlq, retry=Retry(attempts=2, first="10ms"))
    def even(value: int) -> None:
        seen.add(("even", value))

    @app.consume(source, dead_letter=dlq)
    def rest(value: int) -> None:
        seen.add(("rest", value))

    stage = driver.stage(app)
    stage.produce(source, 0, 1, 2)
    reported = stage.catch_up()
    assert seen.read() == [("rest", 0), ("even", 2)]
    (letter,) = stage.records(dlq)
    assert (letter.value, header(letter, "attempts"), header(letter, "error-type")) == (b"1", "2", "OSError")
    assert "in breaks" in header(letter, "traceback")
    assert {event.handler for event in of_kind(reported, events.DeadLettered)} == {"even"}


@scenario
def the_tag_of_a_union_chooses_the_handler(driver: Driver) -> None:
    source, dlq, app, seen = driver.topic(), driver.topic(), App(driver.group()), driver.notes()

    @app.consume(source, value=Created | Cancelled, dead_letter=dlq)
    def create(event: Created) -> None:
        seen.add(("create", event.id))

    @app.consume(source, value=Created | Cancelled, dead_letter=dlq)
    def cancel(event: Cancelled, record: Record) -> None:
        seen.add(("cancel", event.id, record.offset))

    stage = driver.stage(app)
    for number, kind in enumerate(("created", "cancelled", "refunded", "created")):
        stage.produce(source, f'{{"type":"{kind}","id":{number}}}')
    stage.catch_up()
    assert seen.read() == [("create", 0), ("cancel", 1, 1), ("create", 3)]
    assert [header(record, "error-type") for record in stage.records(dlq)] == ["Undecodable"]


@scenario
def a_batch_is_divided_between_routes(driver: Driver) -> None:
    source, out, app = driver.topic(), driver.topic(), App(driver.group())
    options: dict[str, Any] = {"batch": 100, "order": "none", "to": out, "linger": "200ms", "otherwise": "skip"}

    @app.consume(source, when={"type": "a"}, **options)
    def first(values: list[int]) -> list[dict[str, int]]:
        return [{"first": value} for value in values]

    @app.consume(source, when={"type": "b"}, **options)
    def second(values: list[int]) -> list[dict[str, int]]:
        return [{"second": value} for value in values]

    stage = driver.stage(app)
    for number in range(9):
        stage.produce(source, number, headers={"type": b"abc"[number % 3 : number % 3 + 1]})
    reported = stage.catch_up()
    assert counts(reported) == (9, 6, 0, 3)
    assert route_counts(reported) == {"first": Counts(3, 3, 0, 0), "second": Counts(3, 3, 0, 0)}
    assert sorted(record.value or b"" for record in stage.records(out)) == [
        *(b'{"first":%d}' % number for number in (0, 3, 6)),
        *(b'{"second":%d}' % number for number in (1, 4, 7)),
    ]


@scenario
def each_route_has_its_own_resources_middleware_and_outputs(driver: Driver) -> None:
    source, out, audit, app, seen = driver.topic(), driver.topic(), driver.topic(), App(driver.group()), driver.notes()

    @app.resource
    def prices() -> Iterator[dict[int, int]]:
        seen.add("prices")
        yield {1: 10, 3: 30}

    @app.resource(scope="partition")
    def label(prices: dict[int, int]) -> str:
        return f"{len(prices)} prices"

    @app.around
    def every(record: Record, call: Any) -> Any:
        seen.add(("around", record.offset))
        return call()

    @app.consume(source, when={"type": "created"}, to=[out, audit], carry_headers=["trace"])
    def create(value: int, prices: dict[int, int], label: str) -> Iterator[Out]:
        yield Out(prices[value])
        yield Out(label, to=audit)

    @app.consume(source, when={"type": "cancelled"}, to=out)
    def cancel(value: int, record: Record) -> dict[str, int]:
        if len([each for each in seen.read() if each == ("around", record.offset)]) < 3:
            raise Later("100ms", reason="not yet")
        return {"cancelled": value}

    @app.around(handlers=[cancel])
    def only_cancel(record: Record, call: Any, prices: dict[int, int]) -> Any:
        return {**call(), "priced": int(2 in prices)}

    stage = driver.stage(app)
    for number, kind in ((1, b"created"), (2, b"cancelled"), (3, b"created")):
        stage.produce(source, number, headers={"type": kind, "trace": b"t"})
    reported = stage.catch_up()
    assert {each for each in seen.read() if isinstance(each, str)} == {"prices"}
    assert [each for each in seen.read() if each != "prices"] == [("around", number) for number in (0, 1, 1, 1, 2)]
    assert [(record.value, dict(record.headers)) for record in stage.records(out)] == [
        (b"10", {"trace": b"t"}),
        (b'{"cancelled":2,"priced":0}', {}),
        (b"30", {"trace": b"t"}),
    ]
    assert [record.value for record in stage.records(audit)] == [b"2 prices"] * 2
    assert counts(reported) == (3, 5, 0, 0)
    assert route_counts(reported) == {"create": Counts(2, 4, 0, 0), "cancel": Counts(1, 1, 0, 0)}
    assert [event.handler for event in of_kind(reported, events.Delayed)] == ["cancel", "cancel"]
    assert stage.committed(source) == {0: 3}


@scenario
def a_time_limit_holds_for_each_route(driver: Driver) -> None:
    source, dlq, app, seen = driver.topic(), driver.topic(), App(driver.group()), driver.notes()
    options: dict[str, Any] = {"timeout": "300ms", "dead_letter": dlq, "retry": Retry(attempts=1)}

    @app.consume(source, when={"type": "slow"}, **options)
    async def slow(value: int) -> None:
        await asyncio.sleep(3600)

    @app.consume(source, **options)
    async def quick(value: int) -> None:
        seen.add(value)

    stage = driver.stage(app)
    stage.produce(source, 1, headers={"type": b"slow"})
    stage.produce(source, 2)
    reported = stage.catch_up()
    assert seen.read() == [2]
    assert [header(record, "error-type") for record in stage.records(dlq)] == ["TimeoutError"]
    assert [event.handler for event in of_kind(reported, events.DeadLettered)] == ["slow"]
