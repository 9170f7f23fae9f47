"""Outputs that say more than a value: several for a record, to several topics, with keys and headers of their own."""

from collections.abc import AsyncIterator, Iterator

import pytest

from conformance.drivers import Driver, counts
from conformance.scenarios.declaring import Order, header, scenario
from penstock import App, Out, Record, Reject
from penstock.errors import HandlerError


def found(records: list[Record]) -> list[tuple[bytes | None, bytes | None]]:
    return [(record.key, record.value) for record in records]


@scenario
def all_outputs_of_a_record_are_written_to_their_topics(driver: Driver) -> None:
    source, receipts, audit, app = driver.topic(), driver.topic(), driver.topic(3), App(driver.group())

    @app.consume(source, to=[receipts, audit])
    def handle(order: Order) -> Iterator[dict[str, int] | Out]:
        if order.id == 2:
            return
        yield {"receipt": order.id}
        yield Out(order.id, to=audit, key=order.id, partition=2, headers={"type": "audit"})
        yield Out(None, key=f"old {order.id}")

    stage = driver.stage(app)
    stage.produce(source, *(f'{{"id":{n}}}' for n in range(4)), key=b"k")
    reported = stage.catch_up()
    assert counts(reported) == (4, 9, 0, 0)
    assert found(stage.records(receipts)) == [
        each for n in (0, 1, 3) for each in ((b"k", b'{"receipt":%d}' % n), (b"old %d" % n, None))
    ]
    audited = stage.records(audit)
    assert found(audited) == [(b"%d" % n, b"%d" % n) for n in (0, 1, 3)]
    assert {(record.partition, record.headers) for record in audited} == {(2, (("type", b"audit"),))}
    assert stage.committed(source) == {0: 4}


@scenario
def an_async_handler_yields_too_and_its_outputs_need_no_default_topic(driver: Driver) -> None:
    source, out, audit, app = driver.topic(), driver.topic(), driver.topic(), App(driver.group())

    @app.consume(source, order="key")
    async def handle(value: int) -> AsyncIterator[Out]:
        yield Out(value, to=out)
        yield Out(value, to=audit, key=None)

    stage = driver.stage(app)
    stage.produce(source, *range(3), key=b"k")
    stage.catch_up()
    assert found(stage.records(out)) == [(b"k", b"%d" % n) for n in range(3)]
    assert found(stage.records(audit)) == [(None, b"%d" % n) for n in range(3)]


@scenario
def a_handler_that_raises_after_yields_writes_nothing(driver: Driver) -> None:
    source, out, dlq, app = driver.topic(), driver.topic(), driver.topic(), App(driver.group())

    @app.consume(source, to=out, dead_letter=dlq)
    def handle(value: int) -> Iterator[int]:
        yield value
        yield value
        if value == 1:
            raise Reject("one")

    stage = driver.stage(app)
    stage.produce(source, *range(3))
    assert counts(stage.catch_up()) == (3, 4, 1, 0)
    assert [record.value for record in stage.records(out)] == [b"0", b"0", b"2", b"2"]
    assert [(record.value, header(record, "error-message")) for record in stage.records(dlq)] == [(b"1", "one")]


@scenario
def a_batch_has_several_outputs_for_a_record(driver: Driver) -> None:
    source, out, audit, app = driver.topic(), driver.topic(), driver.topic(), App(driver.group())

    @app.consume(source, batch=3, linger="100ms", to=[out, audit])
    def handle(values: list[int]) -> list[int | list[Out] | None]:
        return [[Out(value), Out(value, to=audit)] if value % 2 else value or None for value in values]

    stage = driver.stage(app)
    stage.produce(source, *range(6))
    stage.catch_up()
    assert sorted(record.value or b"" for record in stage.records(out)) == [b"1", b"2", b"3", b"4", b"5"]
    assert sorted(record.value or b"" for record in stage.records(audit)) == [b"1", b"3", b"5"]
    assert stage.committed(source) == {0: 6}


@scenario
def outputs_of_a_key_stay_in_order_however_many_a_record_has(driver: Driver) -> None:
    source, out, app = driver.topic(), driver.topic(), App(driver.group())

    @app.consume(source, to=out, order="key", concurrency=4)
    def handle(value: int) -> Iterator[str]:
        for part in range(1 + value % 3):
            yield f"{value}.{part}"

    stage = driver.stage(app)
    stage.produce(source, *range(60), key=b"k")
    stage.catch_up()
    expected = [f"{value}.{part}".encode() for value in range(60) for part in range(1 + value % 3)]
    assert [record.value for record in stage.records(out)] == expected


@scenario
def an_output_to_a_partition_that_its_topic_does_not_have_fails_its_record(driver: Driver) -> None:
    source, out, audit, dlq = driver.topic(), driver.topic(), driver.topic(2), driver.topic()
    app = App(driver.group())

    @app.consume(source, to=[out, audit], dead_letter=dlq)
    def handle(value: int) -> Iterator[Out]:
        yield Out(value, to=audit, partition=value)
        yield Out(value)

    stage = driver.stage(app)
    stage.produce(source, *range(4))
    assert counts(stage.catch_up()) == (4, 4, 2, 0)
    assert sorted((record.partition, record.value) for record in stage.records(audit)) == [(0, b"0"), (1, b"1")]
    assert {b"0", b"1"} <= {record.value for record in stage.records(out)}
    letters = stage.records(dlq)
    assert [(record.value, header(record, "error-type")) for record in letters] == [
        (b"2", "OutputRefused"),
        (b"3", "OutputRefused"),
    ]
    assert stage.committed(source) == {0: 4}


@scenario
def an_out_to_its_own_source_is_a_bug_that_stops_the_app(driver: Driver) -> None:
    source, dlq, app = driver.topic(), driver.topic(), App(driver.group())

    @app.consume(source, dead_letter=dlq)
    def handle(value: int) -> Out:
        return Out(value, to=source)

    stage = driver.stage(app)
    stage.produce(source, 1)
    with pytest.raises(HandlerError, match="it is also its source, so it would consume its own output"):
        stage.catch_up()
    assert stage.records(dlq) == []


@scenario
def headers_are_carried_on_to_all_outputs(driver: Driver) -> None:
    source, middle, out, app = driver.topic(), driver.topic(), driver.topic(), App(driver.group())
    seen = driver.notes()

    @app.consume(source, to=middle)
    def begin(value: int) -> Out:
        return Out(value, headers={"tenant": "7", "trace": "abc"})

    @app.consume(middle, to=out, carry_headers=["tenant"])
    def carry(value: int) -> Iterator[int | Out]:
        seen.add(value)
        yield value
        yield Out(value, headers={"type": "copy"})

    stage = driver.stage(app)
    stage.produce(source, 5)
    stage.run_until(lambda: len(seen) == 1)
    assert [record.headers for record in stage.records(out)] == [
        (("tenant", b"7"),),
        (("tenant", b"7"), ("type", b"copy")),
    ]
