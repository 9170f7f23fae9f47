"""Exactly-once: under faults, a read-committed reader sees each output once."""

from collections.abc import Iterator

import pytest

from conformance.drivers import Driver
from conformance.scenarios.declaring import scenario
from penstock import App, Out, Reject
from penstock.errors import PenstockError


@scenario
def outputs_of_a_run_that_broke_off_are_there_once(driver: Driver) -> None:
    source, out, app, seen = driver.topic(2), driver.topic(), App(driver.group()), driver.notes()

    @app.consume(source, to=out, delivery="exactly-once", order="key")
    def handle(value: int) -> int:
        seen.add(value)
        if value == 17 and seen.read().count(17) == 1:
            raise Reject("not today")
        return value

    stage = driver.stage(app)
    for number in range(20):
        stage.produce(source, number, key=b"%d" % (number % 5), partition=number % 2)
    with pytest.raises(PenstockError, match="not today"):
        stage.catch_up()
    stage.catch_up()
    assert sorted(int(record.value or b"") for record in stage.records(out)) == list(range(20))
    assert stage.committed(source) == {0: 10, 1: 10}


@scenario
def all_outputs_of_a_record_are_there_once_or_none_is(driver: Driver) -> None:
    source, out, audit, dlq = driver.topic(2), driver.topic(), driver.topic(), driver.topic()
    app, seen = App(driver.group()), driver.notes()

    @app.consume(
        source,
        to=[out, audit],
        dead_letter=dlq,
        delivery="exactly-once",
        order="key",
        settings={"compression.type": "none"},
    )
    def handle(value: int) -> Iterator[Out | int]:
        yield value
        yield Out(value, to=audit, partition=0)
        seen.add(value)
        if value == 13 and seen.read().count(13) == 1:
            raise KeyboardInterrupt
        # Larger than any topic takes.
        yield Out("x" * 2_000_000 if value % 5 == 1 else value)

    stage = driver.stage(app)
    for number in range(20):
        stage.produce(source, number, key=b"%d" % (number % 5), partition=number % 2)
    with pytest.raises(PenstockError, match="KeyboardInterrupt"):
        stage.catch_up()
    stage.catch_up()
    kept = [number for number in range(20) if number % 5 != 1]
    assert sorted(int(record.value or b"") for record in stage.records(out)) == sorted(kept * 2)
    assert sorted(int(record.value or b"") for record in stage.records(audit)) == kept
    assert sorted(int(record.value or b"") for record in stage.records(dlq)) == [1, 6, 11, 16]
    assert stage.committed(source) == {0: 10, 1: 10}
