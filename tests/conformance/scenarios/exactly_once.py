"""Exactly-once: under faults, a read-committed reader sees each output once."""

import pytest

from conformance.drivers import Driver
from conformance.scenarios.declaring import scenario
from penstock import App, Reject
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
